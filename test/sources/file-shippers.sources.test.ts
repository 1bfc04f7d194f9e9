import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { examplePath } from './examples.ts'
import { isInstalled } from './programs.ts'
import { type RunningProgram, startProgram } from './run-program.ts'
import { SourcesInstallation } from './stored-entries.ts'

/** Enough for several requests, and for several chunks in one. */
const LINES = 5_000
const RUN_DEADLINE_MS = 55_000

let sources: SourcesInstallation
let folder: string

beforeAll(async () => {
  sources = await SourcesInstallation.start()
  folder = await mkdtemp(join(tmpdir(), 'sluice-shippers-'))
})

afterAll(async () => {
  await sources?.stop()
  await rm(folder, { recursive: true, force: true })
})

async function start(command: readonly [string, ...string[]], service: string): Promise<RunningProgram> {
  const input = join(folder, `${service}.log`)
  await writeFile(input, Array.from({ length: LINES }, (_, i) => `warning line ${i} of ${LINES}\n`).join(''))
  const environment = {
    SLUICE_API_URL: sources.installation.apiUrl,
    SLUICE_API_KEY: sources.installation.apiKey,
    SERVICE: service,
    INPUT: input,
    POSITIONS: join(folder, `${service}.yml`),
  }
  return startProgram(command, environment, { deadlineMs: RUN_DEADLINE_MS })
}

/** The program starts while the API is down, and sends all lines once it is up. */
async function expectAllLines(command: readonly [string, ...string[]], service: string): Promise<void> {
  await sources.killApi()
  const program = await start(command, service)
  try {
    await sources.startApi()
    expect((await sources.countsOf(service, LINES)).distinct).toBe(LINES)
  } finally {
    await program.stop()
  }
  expect(program.output()).not.toMatch(/panic|fatal/i)
}

describe.skipIf(!isInstalled('promtail'))('Promtail, if it is on the PATH', () => {
  it('sends each line, also those from when the API was down', async () => {
    const config = examplePath('promtail/promtail.yml')
    await expectAllLines(['promtail', '-config.expand-env', `-config.file=${config}`], 'promtail')
    const [first] = await sources.entriesOf('promtail', LINES)
    expect(first).toMatchObject({ level: 'warn' })
  })
})

describe.skipIf(!isInstalled('filebeat'))('Filebeat, if it is on the PATH', () => {
  it('sends each line, also those from when the API was down', async () => {
    const config = examplePath('filebeat/filebeat.yml')
    const home = join(folder, 'filebeat')
    await expectAllLines(
      [
        'filebeat',
        '-c',
        config,
        '--path.home',
        home,
        '--path.data',
        join(home, 'data'),
        '--strict.perms=false',
      ],
      'filebeat',
    )
    const [first] = await sources.entriesOf('filebeat', LINES)
    expect(first).toMatchObject({ level: 'log', metadata: { input: { type: 'log' } } })
  })
})
