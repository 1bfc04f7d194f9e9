import { eventually } from '@sluice/harness'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { examplePath } from './examples.ts'
import { LosingProxy } from './losing-proxy.ts'
import { isInstalled } from './programs.ts'
import { runProgram, startProgram } from './run-program.ts'
import { SourcesInstallation } from './stored-entries.ts'

/** Enough for several requests. */
const RECORDS = 2_500
const RUN_DEADLINE_MS = 50_000

const program = examplePath('python-logging/main.py')
describe.skipIf(!isInstalled('python3'))('the example with Python, if the PATH has python3', () => {
  let sources: SourcesInstallation

  beforeAll(async () => {
    sources = await SourcesInstallation.start()
  })

  afterAll(async () => {
    await sources?.stop()
  })

  const environment = (service: string): Record<string, string> => ({
    SLUICE_API_URL: sources.installation.apiUrl,
    SLUICE_API_KEY: sources.installation.apiKey,
    SERVICE: service,
    PYTHONDONTWRITEBYTECODE: '1',
  })

  it('sends level, message, time, logger, extra values and stack', async () => {
    const service = 'python-fields'
    const { code, output } = await runProgram(['python3', program], environment(service), {
      deadlineMs: RUN_DEADLINE_MS,
    })
    expect({ code, output }).toMatchObject({ code: 0 })
    expect(output).not.toContain('sluice:')
    const [connecting, order, slow, failed] = await sources.entriesOf(service, 4)
    expect(connecting).toMatchObject({ level: 'debug', message: 'Connecting', environment: 'production' })
    expect(order).toMatchObject({
      level: 'info',
      message: 'Order 4711 accepted',
      source: 'server',
      metadata: {
        logger: 'checkout.payment',
        file: 'main.py',
        order: { id: 4711, total: 12.5 },
        user: 'ada',
      },
    })
    expect(slow).toMatchObject({
      level: 'warn',
      message: 'Slow answer: half a pair ?, and nan',
      metadata: { ratio: 'nan' },
    })
    expect(failed).toMatchObject({ level: 'error', message: 'Payment failed' })
    expect(failed?.stack).toContain('ZeroDivisionError: division by zero')
  })

  it('sends each record once while the API is down and up again', async () => {
    const service = 'python-down'
    await sources.killApi()
    const run = startProgram(['python3', program, String(RECORDS)], environment(service), {
      deadlineMs: RUN_DEADLINE_MS,
    })
    await eventually(async () => {
      expect(run.output()).toContain(`number ${RECORDS - 1}`)
    })
    await sources.startApi()
    const { code, output } = await run.ended
    expect({ code, output: output.slice(-500) }).toMatchObject({ code: 0 })
    expect(output).not.toContain('sluice:')
    const counts = await sources.countsOf(service, RECORDS + 4)
    expect(counts).toEqual({ rows: RECORDS + 4, distinct: RECORDS + 4 })
  })

  it('sends each record once although each third answer is lost', async () => {
    const service = 'python-lost-answers'
    const proxy = await LosingProxy.open(sources.installation.apiUrl, { every: 3, instead: 'close' })
    try {
      const run = await runProgram(
        ['python3', program, String(RECORDS)],
        { ...environment(service), SLUICE_API_URL: proxy.url },
        { deadlineMs: RUN_DEADLINE_MS },
      )
      expect(run).toMatchObject({ code: 0 })
      expect(run.output).not.toContain('sluice:')
    } finally {
      await proxy.close()
    }
    expect(proxy.lost).toBeGreaterThan(5)
    const counts = await sources.countsOf(service, RECORDS + 4)
    expect(counts).toEqual({ rows: RECORDS + 4, distinct: RECORDS + 4 })
  })

  it('ends, and says how many records are lost, if the API stays down', async () => {
    await sources.killApi()
    const { code, output } = await runProgram(['python3', program, '150'], environment('python-lost'), {
      deadlineMs: RUN_DEADLINE_MS,
    })
    await sources.startApi()
    expect(code).toBe(0)
    expect(output).toContain('sluice: 154 records were not sent')
  })
})
