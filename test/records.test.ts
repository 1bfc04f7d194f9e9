// What a level or an environment is called must not depend on the protocol that carries it. Entries of `/v1/logs` are not part of it: they
// have the values of the contract.
import { encodeLogs, jsonLogs, type OtlpResourceLogs } from '@sluice/harness/otlp-logs'
import { levelsByName } from '@sluice/records'
import { describe, expect, it } from 'vitest'
import { sharedTestApi } from '../apps/api/test/support/shared-api.ts'

/** What a record says, in the words of its sender. */
interface Said {
  readonly level?: string | number
  /** The number of OpenTelemetry. */
  readonly severityNumber?: number
  readonly environment?: string
}

interface Source {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: (records: readonly Said[]) => string | Buffer
}

const lines = (values: readonly unknown[]): string =>
  values.map((value) => `${JSON.stringify(value)}\n`).join('')

const resourceLogs = (records: readonly Said[]): OtlpResourceLogs[] =>
  records.map(({ level, severityNumber, environment }) => ({
    resource: { attributes: environment === undefined ? {} : { 'deployment.environment.name': environment } },
    scopeLogs: [
      {
        logRecords: [
          {
            body: 'm',
            ...(level === undefined ? {} : { severityText: String(level) }),
            ...(severityNumber === undefined ? {} : { severityNumber }),
          },
        ],
      },
    ],
  }))

const sources = {
  'OTLP in Protocol Buffers': {
    url: '/v1/logs',
    headers: { 'content-type': 'application/x-protobuf' },
    body: (records) => encodeLogs(resourceLogs(records)),
  },
  'OTLP in JSON': { url: '/v1/logs', body: (records) => jsonLogs(resourceLogs(records)) },
  'Elasticsearch _bulk': {
    url: '/elasticsearch/_bulk',
    body: (records) => lines(records.flatMap((said) => [{ create: {} }, { message: 'm', ...said }])),
  },
  Loki: {
    url: '/loki/api/v1/push',
    body: (records) =>
      JSON.stringify({
        streams: records.map(({ level, environment }) => ({
          stream: { level: level === undefined ? undefined : String(level), environment },
          values: [['1763632800000000000', 'm']],
        })),
      }),
  },
  'Splunk HEC': {
    url: '/services/collector',
    body: (records) => lines(records.map((said) => ({ event: 'm', fields: said }))),
  },
  Datadog: {
    url: '/api/v2/logs',
    body: (records) =>
      JSON.stringify(
        records.map(({ level, environment, ...said }) => ({
          message: 'm',
          [typeof level === 'string' && !/^\d+$/.test(level) ? 'status' : 'level']: level,
          ddtags: environment === undefined ? undefined : `a:b,env:${environment}`,
          ...said,
        })),
      ),
  },
} as const satisfies Readonly<Record<string, Source>>

const spellings = (name: string): string[] => [
  name,
  name.toUpperCase(),
  `${name.charAt(0).toUpperCase()}${name.slice(1)}`,
]

type Leveled = readonly [said: Said, level: string]
const knownLevels: readonly Leveled[] = [
  ...[...levelsByName].flatMap(([name, { level }]) =>
    spellings(name).map((spelling) => [{ level: spelling }, level] as const),
  ),
  ...['debug', 'debug', 'info', 'warn', 'error', 'error'].flatMap((level, at) =>
    [(at + 1) * 10, `${at + 1}0`].map((number) => [{ level: number }, level] as const),
  ),
]
const unknownLevels = ['', 'banana', 'errors', '35', '__proto__', 'constructor', 'x'.repeat(300)]
const levels = [...knownLevels, ...unknownLevels.map((name): Leveled => [{ level: name }, 'log'])]

const environments: Readonly<Record<string, readonly string[]>> = {
  development: ['development', 'develop', 'dev'],
  staging: ['staging', 'stage', 'stg'],
  production: ['production', 'prod', 'prd'],
  '': ['qa', 'test', '__proto__', 'productions'],
}

const namedEnvironments = Object.entries(environments).flatMap(([environment, names]) =>
  names.flatMap(spellings).map((name): readonly [name: string, environment: string] => [name, environment]),
)

const api = sharedTestApi()

/** The level of each number of OpenTelemetry, from 1 to 24. */
const numbered = ['debug', 'debug', 'info', 'warn', 'error', 'error'].flatMap((level) =>
  Array.from({ length: 4 }, () => level),
)

describe.each(Object.entries<Source>(sources))('%s', (name, { url, headers = {}, body }) => {
  async function rowsOf(records: readonly Said[]): Promise<readonly Readonly<Record<string, string>>[]> {
    const response = await api.post(body(records), { url, headers: { 'dd-api-key': api.key, ...headers } })
    expect(response.statusCode).toBeLessThan(300)
    expect(api.queue.rows).toHaveLength(records.length)
    return api.queue.rows
  }

  it('reads every name of a level', async () => {
    const rows = await rowsOf(levels.map(([said]) => said))
    expect(rows.map(({ level }, at) => [levels[at]?.[0], level])).toEqual(levels)
  })

  it('reads every name of an environment', async () => {
    const rows = await rowsOf(namedEnvironments.map(([environment]) => ({ environment })))
    expect(rows.map(({ environment = '' }, at) => [namedEnvironments[at]?.[0], environment])).toEqual(
      namedEnvironments,
    )
  })

  // Loki has no numbers of severities.
  it.each(name === 'Loki' ? [] : [numbered])('reads the numbers of OpenTelemetry', async (...expected) => {
    const rows = await rowsOf(expected.map((_, at) => ({ severityNumber: at + 1 })))
    expect(rows.map(({ level }) => level)).toEqual(expected)
  })
})
