import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { examplePath } from './examples.ts'
import { runProgram } from './run-program.ts'
import { SourcesInstallation } from './stored-entries.ts'

/** From tools/otel-examples.sh. */
const prepared = fileURLToPath(new URL('../../node_modules/.cache/otel-examples/', import.meta.url))
const RUN_DEADLINE_MS = 40_000

const sdks = [
  {
    sdk: 'JavaScript',
    needs: `${prepared}js/node_modules`,
    command: [process.execPath, `${prepared}js/main.js`],
    stack: 'SyntaxError',
  },
  {
    sdk: 'Python',
    needs: `${prepared}python/bin/python`,
    command: [`${prepared}python/bin/python`, examplePath('otel-python/main.py')],
    stack: 'ZeroDivisionError',
  },
  // Its errors have no stack.
  { sdk: 'Go', needs: `${prepared}go/example`, command: [`${prepared}go/example`], stack: '' },
] as const

let sources: SourcesInstallation

beforeAll(async () => {
  sources = await SourcesInstallation.start()
})

afterAll(async () => {
  await sources?.stop()
})

describe.each(sdks)('the example of the SDK for $sdk', ({ sdk, needs, command, stack }) => {
  it.skipIf(!existsSync(needs))('sends its records, if tools/otel-examples.sh has prepared it', async () => {
    const service = `otel-${sdk.toLowerCase()}`
    const { apiUrl, apiKey } = sources.installation
    const { code, output } = await runProgram(
      command,
      {
        OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${apiUrl}/v1/logs`,
        OTEL_EXPORTER_OTLP_LOGS_HEADERS: `Authorization=Bearer%20${apiKey},Sluice-Idempotency=body`,
        OTEL_EXPORTER_OTLP_LOGS_COMPRESSION: 'gzip',
        SERVICE: service,
      },
      { deadlineMs: RUN_DEADLINE_MS },
    )
    expect({ code, output }).toEqual({ code: 0, output: '' })
    const [accepted, failed] = await sources.entriesOf(service, 2)
    expect(accepted).toMatchObject({
      level: 'info',
      message: 'Order 4711 accepted',
      environment: 'production',
      metadata: { attributes: { 'order.id': 4711, 'user.id': 'ada' }, scope: { name: 'payment' } },
    })
    expect(failed).toMatchObject({ level: 'error', message: 'Payment failed' })
    expect(failed?.stack).toContain(stack)
  })
})
