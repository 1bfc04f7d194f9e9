import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { LosingProxy } from './losing-proxy.ts'
import { type Command, examplePath, preparedPath, type ProgramRun, runProgram } from './programs.ts'
import { Sources } from './sources.ts'

/** From tools/otel-examples.sh. */
const prepared = preparedPath('otel-examples')
const python = `${prepared}/python/bin/python`

interface Sdk {
  readonly sdk: string
  readonly needs: string
  readonly command: Command
  /** A part of the stack of an error. Errors of Go have none. */
  readonly stack: string
}

const sdks: readonly Sdk[] = [
  {
    sdk: 'JavaScript',
    needs: `${prepared}/js/node_modules`,
    command: [process.execPath, `${prepared}/js/main.js`],
    stack: 'SyntaxError',
  },
  {
    sdk: 'Python',
    needs: python,
    command: [python, examplePath('otel-python/main.py')],
    stack: 'ZeroDivisionError',
  },
  { sdk: 'Go', needs: `${prepared}/go/example`, command: [`${prepared}/go/example`], stack: '' },
]

const sources = Sources.use()

describe.each(sdks)('the example of the SDK for $sdk', ({ sdk, needs, command, stack }) => {
  const isPrepared = existsSync(needs)

  /** Runs the example as its page does. */
  function run(service: string, url: string): Promise<ProgramRun> {
    return runProgram(command, {
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${url}/v1/logs`,
      OTEL_EXPORTER_OTLP_LOGS_HEADERS: `Authorization=Bearer%20${sources.installation.apiKey},Sluice-Idempotency=body`,
      OTEL_EXPORTER_OTLP_LOGS_COMPRESSION: 'gzip',
      SERVICE: service,
    })
  }

  it.skipIf(!isPrepared)('sends its records, if tools/otel-examples.sh has prepared it', async () => {
    const service = `otel-${sdk}`
    expect(await run(service, sources.installation.apiUrl)).toEqual({ code: 0, output: '' })
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

  it.skipIf(!isPrepared)('has its records stored once if a response is lost', async () => {
    const service = `otel-${sdk}-lost`
    await using proxy = await LosingProxy.open(sources.installation.apiUrl, Infinity)
    await run(service, proxy.url)
    expect(proxy.statuses).toEqual(['200', '200 replayed'])
    expect(await sources.entriesOf(service, 2)).toHaveLength(2)
  })
})
