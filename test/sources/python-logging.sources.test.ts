import { eventually } from '@sluice/harness'
import { describe, expect, it } from 'vitest'
import { LosingProxy } from './losing-proxy.ts'
import { type Command, examplePath, isInstalled, runProgram, startProgram } from './programs.ts'
import { Sources } from './sources.ts'

/** Enough for several requests. */
const RECORDS = 2_500
/** What the example sends besides. */
const OWN = 4

const main = examplePath('python-logging/main.py')
const python = (...args: string[]): Command => ['python3', ...args]
const noCache = { PYTHONDONTWRITEBYTECODE: '1' }

describe.skipIf(!isInstalled('python3'))('the example with Python, if the PATH has python3', () => {
  const sources = Sources.use()
  const environment = (service: string) => ({ ...sources.environment(service), ...noCache })

  it('sends level, message, time, logger, extra values and stack', async () => {
    const service = 'python-fields'
    const { code, output } = await runProgram(python(main), environment(service))
    expect({ code, output }).toMatchObject({ code: 0 })
    expect(output).not.toContain('sluice:')
    const [connecting, order, slow, failed] = await sources.entriesOf(service, OWN)
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
    const run = startProgram(python(main, String(RECORDS)), environment(service))
    await eventually(async () => {
      expect(run.output()).toContain(`number ${RECORDS - 1}`)
    })
    await sources.startApi()
    const { code, output } = await run.ended
    expect({ code, output: output.slice(-500) }).toMatchObject({ code: 0 })
    expect(output).not.toContain('sluice:')
    expect(await sources.entriesOf(service, RECORDS + OWN)).toHaveLength(RECORDS + OWN)
  })

  it('sends each record once although each third response is lost', async () => {
    const service = 'python-lost-responses'
    await using proxy = await LosingProxy.open(sources.installation.apiUrl, 3)
    const losing = { ...environment(service), SLUICE_API_URL: proxy.url }
    const run = await runProgram(python(main, String(RECORDS)), losing)
    expect(run).toMatchObject({ code: 0 })
    expect(run.output).not.toContain('sluice:')
    expect(proxy.lost).toBeGreaterThan(5)
    expect(await sources.entriesOf(service, RECORDS + OWN)).toHaveLength(RECORDS + OWN)
  })
})
