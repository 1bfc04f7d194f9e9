import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { examplePath } from './examples.ts'
import { isInstalled } from './programs.ts'
import { runProgram, type ProgramRun } from './run-program.ts'
import { SourcesInstallation } from './stored-entries.ts'

/** From tools/log4j.sh. */
const libraries = fileURLToPath(new URL('../../node_modules/.cache/log4j', import.meta.url))
const RUN_DEADLINE_MS = 50_000
/** The events of the example without an argument. */
const EVENTS = 4

const isReady = isInstalled('java') && existsSync(libraries)

describe.skipIf(!isReady)('the example with Log4j 2, if there is Java, and tools/log4j.sh was run', () => {
  let sources: SourcesInstallation
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-log4j-'))
    sources = await SourcesInstallation.start()
  })

  afterAll(async () => {
    await sources?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  /** Runs the example as its page does. Java compiles the source. */
  function run(service: string, events: number): Promise<ProgramRun> {
    const example = examplePath('log4j2')
    const command = ['java', '-cp', `${libraries}/*:${example}`, join(example, 'Main.java'), String(events)]
    const environment = {
      SLUICE_API_URL: sources.installation.apiUrl,
      SLUICE_API_KEY: sources.installation.apiKey,
      SERVICE: service,
    }
    return runProgram(command as [string, ...string[]], environment, {
      cwd: folder,
      deadlineMs: RUN_DEADLINE_MS,
    })
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
    const { code } = await run(service, events)
    expect(code).toBe(0)
    await sources.startApi()
    const unsent = readFileSync(join(folder, 'sluice-unsent.ndjson'))
    const response = await fetch(`${sources.installation.apiUrl}/v1/logs`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${sources.installation.apiKey}`,
        'content-type': 'application/x-ndjson',
      },
      body: unsent,
    })
    expect(await response.json()).toEqual({ success: true, accepted: events + EVENTS, rejected: 0 })
    const counts = await sources.countsOf(service, events + EVENTS)
    expect(counts).toEqual({ rows: events + EVENTS, distinct: events + EVENTS })
  })
})
