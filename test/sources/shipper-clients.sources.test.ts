import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { clients, inputLine, isPrepared, isUnchanged, messageOf, runClient } from './clients.ts'
import { type Command, isInstalled, preparedPath, type ProgramRun, runProgram } from './programs.ts'
import { Sources } from './sources.ts'

const SETUP_DEADLINE_MS = 300_000

/** Too large for the dependencies of this repository. */
const npmPackages = [
  '@elastic/elasticsearch@9.4.3',
  '@datadog/datadog-api-client@1.64.0',
  'pino@10',
  'pino-loki@3.0.0',
  'splunk-logging@0.11.1',
  'winston@3',
  'winston-elasticsearch@0.19.0',
  'winston-loki@6.1.7',
  'winston-splunk-httplogger@3.1.8',
] as const

const pythonPackages = [
  'datadog-api-client==2.62.0',
  'elasticsearch==9.5.1',
  'python-logging-loki==0.3.1',
  'splunk-handler==3.0.0',
  // python-logging-loki needs it, and does not say so.
  'setuptools<81',
] as const

const RECORDS = 20

/** What the program sends with each message. */
const expected: Readonly<Record<string, object>> = {
  '@elastic/elasticsearch': { level: 'warn', metadata: { _index: 'logs' } },
  'elasticsearch, Python': { level: 'warn', metadata: { _index: 'logs' } },
  'winston-loki': { level: 'warn' },
  'pino-loki': { level: 'warn' },
  'python-logging-loki': { level: 'error' },
  'splunk-logging': { level: 'warn', metadata: { source: 'till' } },
  // The handler has no place for a service.
  'splunk-handler': { service: '', metadata: { source: 'splunk-handler', index: 'main' } },
  'datadog-api-client, JavaScript': { environment: 'production', metadata: { hostname: 'h' } },
  'datadog-api-client, Python': { level: 'error' },
}

const programs = fileURLToPath(new URL('clients/', import.meta.url))
const npmFolder = preparedPath('sources/npm')
const pythonFolder = preparedPath('sources/python')
const python = join(pythonFolder, 'bin', 'python')

async function install(command: Command): Promise<void> {
  // Package managers may get their certificates and registries from the environment.
  const environment = process.env as Record<string, string>
  const { code, output } = await runProgram(command, environment, { deadlineMs: SETUP_DEADLINE_MS })
  if (code !== 0) throw new Error(`${command[0]} failed: ${output}`)
}

const program = (name: string): Command => ['node', join(npmFolder, name)]

const sources = Sources.use()
const run = (command: Command, service: string): Promise<ProgramRun> =>
  runProgram(command, sources.environment(service))

beforeAll(async () => {
  await mkdir(npmFolder, { recursive: true })
  await cp(programs, npmFolder, { recursive: true })
  const options = ['--no-save', '--no-audit', '--no-fund', '--prefix', npmFolder]
  await install(['npm', 'install', ...options, ...npmPackages])
  if (!isInstalled('python3')) return
  await install(['python3', '-m', 'venv', pythonFolder])
  await install([python, '-m', 'pip', 'install', '--quiet', ...pythonPackages])
}, SETUP_DEADLINE_MS)

describe('the client for JavaScript', () => {
  it('of Elasticsearch and Splunk for winston stores each record once, with the fields in their wrappers as columns', async () => {
    expect(await run(program('winston.cjs'), 'winston')).toMatchObject({ code: 0, output: '' })
    const entries = await sources.entriesOf('winston', 3)
    expect(entries.map(({ message }) => message).toSorted()).toEqual([
      'to Elasticsearch: info',
      'to Elasticsearch: warn',
      'to Splunk',
    ])
    for (const { environment } of entries) expect(environment).toBe('production')
  })

  it('of Loki for winston and pino stores lines', async () => {
    const { output } = await run(program('loki.cjs'), 'loki-js')
    expect(output).toBe('')
    const entries = await sources.entriesOf('loki-js', 3)
    expect(entries.map(({ level, message }) => [level, message.slice(0, 30)])).toEqual(
      expect.arrayContaining([
        ['warn', 'winston in JSON {"level":"warn'],
        ['warn', 'winston in Protocol Buffers {"'],
        ['error', 'from pino'],
      ]),
    )
    const batch = await sources.entriesOf('loki-js-batch', 100)
    expect(batch.map(({ level, message }) => `${level} ${message}`).toSorted()).toEqual(
      Array.from({ length: 100 }, (_, order) => `info line ${order}`).toSorted(),
    )
    const { metadata } = entries.find(({ message }) => message === 'from pino') ?? {}
    expect(metadata).toEqual({ order: 7, pid: expect.any(Number), hostname: expect.any(String) })
  })
})

describe.each(clients)('the program with $name', (client) => {
  it('stores its messages unchanged', async (context) => {
    context.skip(!isPrepared(client), `${client.needs} is not installed`)
    const service = client.name.replaceAll(/\W+/g, '-')
    const { apiUrl: url, apiKey: key } = sources.installation
    const numbers = Array.from({ length: RECORDS }, (_, number) => number)
    const input = numbers.map((number) => inputLine(service, number))
    const { code, output } = await runClient(client, { url, key, service }, input)
    expect({ code, output }).toMatchObject({ code: 0 })
    const entries = await sources.entriesOf(client.name === 'splunk-handler' ? '' : service, RECORDS)
    for (const number of numbers) {
      const found = entries.filter(({ message }) => isUnchanged(message, messageOf(service, number)))
      expect(found).toMatchObject([expected[client.name] ?? {}])
    }
  })
})
