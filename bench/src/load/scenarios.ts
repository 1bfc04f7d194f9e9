/** The share of requests that have this number of entries. */
export interface RequestShare {
  readonly share: number
  readonly entries: number
}

export interface Scenario {
  readonly name: ScenarioName
  readonly title: string
  /** The shares add up to 1. */
  readonly requests: readonly RequestShare[]
  /** Where the search for the number of connections that saturates a system starts. */
  readonly connections: number
  /** How a body is written. */
  readonly format: BodyFormat
  /** Entries are sent while the worker is stopped. The worker is started afterwards. */
  readonly burst: boolean
}

export type ScenarioName = 'batch-100' | 'single' | 'mix' | 'burst' | 'otlp' | 'otlp-1000'
export type BodyFormat = 'json' | 'otlp'

export const scenarios: readonly Scenario[] = [
  {
    name: 'batch-100',
    title: '100 entries per request',
    requests: [{ share: 1, entries: 100 }],
    connections: 24,
    format: 'json',
    burst: false,
  },
  {
    name: 'single',
    title: 'one entry per request',
    requests: [{ share: 1, entries: 1 }],
    connections: 64,
    format: 'json',
    burst: false,
  },
  {
    name: 'mix',
    title: 'of ten requests, seven with one entry, two with 20, one with 100',
    requests: [
      { share: 0.7, entries: 1 },
      { share: 0.2, entries: 20 },
      { share: 0.1, entries: 100 },
    ],
    connections: 48,
    format: 'json',
    burst: false,
  },
  {
    name: 'burst',
    title: '100 entries per request while the worker is stopped, then the drain',
    requests: [{ share: 1, entries: 100 }],
    connections: 24,
    format: 'json',
    burst: true,
  },
  {
    name: 'otlp',
    title: '100 records per request, OTLP in Protocol Buffers',
    requests: [{ share: 1, entries: 100 }],
    connections: 24,
    format: 'otlp',
    burst: false,
  },
  {
    name: 'otlp-1000',
    title: '1,000 records per request, OTLP in Protocol Buffers',
    requests: [{ share: 1, entries: 1_000 }],
    connections: 8,
    format: 'otlp',
    burst: false,
  },
]

export function entriesPerRequest({ requests }: Pick<Scenario, 'requests'>): number {
  return requests.reduce((sum, { share, entries }) => sum + share * entries, 0)
}
