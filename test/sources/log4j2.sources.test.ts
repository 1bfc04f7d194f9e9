import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { examplePath, isInstalled, preparedPath, type ProgramRun, runProgram } from './programs.ts'
import { Sources } from './sources.ts'

/** From tools/log4j.sh. */
const libraries = preparedPath('log4j')
/** The events of the example without an argument. */
const EVENTS = 4

const isReady = isInstalled('java') && existsSync(libraries)

describe.skipIf(!isReady)('the example with Log4j 2, if there is Java, and tools/log4j.sh was run', () => {
  const sources = Sources.use()
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-log4j-'))
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** Runs the example as its page does. Java compiles the source. */
  function run(service: string, events: number): Promise<ProgramRun> {
    const example = examplePath('log4j2')
    const args = ['-cp', `${libraries}/*:${example}`, join(example, 'Main.java'), String(events)]
    return runProgram(['java', ...args], sources.environment(service), { cwd: folder })
  }

  it('sends level, message, time, logger, context and stack', async () => {
    const service = 'log4j-fields'
    expect(await run(service, 0)).toEqual({ code: 0, output: '' })
    const entries = await sources.entriesOf(service, EVENTS)
    expect(entries.map(({ level }) => level).toSorted()).toEqual(['debug', 'error', 'info', 'warn'])
    expect(entries.find(({ level }) => level === 'info')).toMatchObject({
      message: 'Order 4711 accepted',
      environment: 'production',
      source: 'server',
      metadata: { logger: 'checkout.Payment', thread: 'main', context: { user: 'ada' } },
    })
    expect(entries.find(({ level }) => level === 'warn')?.message).toBe('Slow answer: "quoted" \\ ä')
    const failed = entries.find(({ level }) => level === 'error')
    expect(failed?.message).toBe('Payment failed')
    expect(failed?.stack).toContain('java.lang.NumberFormatException: For input string: "x"')
  })

  it('writes events to the file if the API is down, and the file can be sent later', async () => {
    const service = 'log4j-down'
    const events = 90
    await sources.killApi()
    expect(await run(service, events)).toMatchObject({ code: 0 })
    await sources.startApi()
    const { apiUrl, apiKey } = sources.installation
    const response = await fetch(`${apiUrl}/v1/logs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/x-ndjson' },
      body: readFileSync(join(folder, 'sluice-unsent.ndjson')),
    })
    expect(await response.json()).toEqual({ success: true, accepted: events + EVENTS, rejected: 0 })
    expect(await sources.entriesOf(service, events + EVENTS)).toHaveLength(events + EVENTS)
  })
})
