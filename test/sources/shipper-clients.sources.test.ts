import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clientsFolder, installNpmClients, installPythonClients } from './clients.ts'
import { isInstalled } from './programs.ts'
import { type ProgramRun, runProgram } from './run-program.ts'
import { SourcesInstallation } from './stored-entries.ts'

const RUN_DEADLINE_MS = 50_000
const SETUP_DEADLINE_MS = 300_000

let sources: SourcesInstallation

beforeAll(async () => {
  sources = await SourcesInstallation.start()
})

afterAll(async () => {
  await sources?.stop()
})

function run(command: readonly [string, ...string[]], service: string): Promise<ProgramRun> {
  const { apiUrl, apiKey } = sources.installation
  const environment = { SLUICE_API_URL: apiUrl, SLUICE_API_KEY: apiKey, SERVICE: service }
  return runProgram(command, environment, { deadlineMs: RUN_DEADLINE_MS })
}

describe('the client for JavaScript', () => {
  let folder: string

  beforeAll(async () => {
    folder = await installNpmClients()
  }, SETUP_DEADLINE_MS)

  const program = (name: string): [string, string] => ['node', join(folder, name)]

  it('of Elasticsearch stores all valid documents, and drops the others', async () => {
    const { output } = await run(program('elasticsearch.mjs'), 'elastic-js')
    expect(output).toBe(
      'dropped: 400 /metadata must have at most 65536 bytes as JSON\n999 stored, 1 failed\n',
    )
    expect(await sources.countsOf('elastic-js', 999)).toEqual({ rows: 999, distinct: 999 })
    const [first] = await sources.entriesOf('elastic-js', 999)
    expect(first).toMatchObject({ level: 'warn', metadata: { _index: 'shop' } })
  })

  it('of Loki for winston and pino stores lines', async () => {
    const { output } = await run(program('loki.cjs'), 'loki-js')
    expect(output).toBe('')
    const entries = await sources.entriesOf('loki-js', 3)
    expect(entries.map(({ level, message }) => [level, message.slice(0, 30)])).toEqual(
      expect.arrayContaining([
        ['warn', 'winston in JSON {"level":"warn'],
        ['warn', 'winston in Protocol Buffers {"'],
        ['error', expect.stringContaining('"level":50')],
      ]),
    )
  })

  it('of Splunk stores events', async () => {
    const { output } = await run(program('splunk.cjs'), 'splunk-js')
    expect(output).toBe('Success\n')
    expect(await sources.entriesOf('splunk-js', 1)).toMatchObject([
      { level: 'warn', message: 'from splunk-logging', metadata: { order: 7, source: 'till', host: 'h' } },
    ])
  })

  it('of Datadog stores logs', async () => {
    const { code } = await run(program('datadog.cjs'), 'datadog-js')
    expect(code).toBe(0)
    expect(await sources.entriesOf('datadog-js', 1)).toMatchObject([
      { message: 'from the client of Datadog', environment: 'production', metadata: { ddsource: 'nodejs' } },
    ])
  })
})

describe.skipIf(!isInstalled('python3'))('the client for Python, if the PATH has python3', () => {
  let python: string

  beforeAll(async () => {
    python = await installPythonClients()
  }, SETUP_DEADLINE_MS)

  it('of Elasticsearch, Loki, Splunk and Datadog stores records', async () => {
    const { code, output } = await run([python, join(clientsFolder, 'clients.py')], 'python-clients')
    expect({ code, output }).toMatchObject({ code: 0 })
    expect(output).toContain('(1, [])')
    const entries = await sources.entriesOf('python-clients', 3)
    expect(entries.map(({ level, message }) => `${level} ${message}`).toSorted()).toEqual([
      'error datadog',
      'error loki',
      'warn elasticsearch',
    ])
    // The handler has no place for a service.
    expect((await sources.entriesOf('', 1)).find(({ message }) => message === 'splunk')).toMatchObject({
      metadata: { source: 'python-clients', index: 'main' },
    })
  })
})
