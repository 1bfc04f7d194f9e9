/** The share of requests that have this number of entries. */
export interface RequestShare {
  readonly share: number
  readonly entries: number
}

export type BodyFormat = 'json' | 'otlp'

export interface Scenario {
  readonly name: string
  readonly title: string
  /** The shares add up to 1. */
  readonly requests: readonly RequestShare[]
  /** Where the search for the number of connections that saturates a system starts. */
  readonly connections: number
  /** How a body is written. */
  readonly format: BodyFormat
}

const all = (entries: number): readonly RequestShare[] => [{ share: 1, entries }]
const mix = [
  { share: 0.7, entries: 1 },
  { share: 0.2, entries: 20 },
  { share: 0.1, entries: 100 },
]

export const scenarios: readonly Scenario[] = [
  {
    name: 'batch-100',
    title: '100 entries per request',
    requests: all(100),
    connections: 24,
    format: 'json',
  },
  { name: 'single', title: 'one entry per request', requests: all(1), connections: 64, format: 'json' },
  {
    name: 'mix',
    title: 'of ten requests, seven with one entry, two with 20, one with 100',
    requests: mix,
    connections: 48,
    format: 'json',
  },
  {
    name: 'otlp',
    title: '100 records per request, OTLP in Protocol Buffers',
    requests: all(100),
    connections: 24,
    format: 'otlp',
  },
  {
    name: 'otlp-1000',
    title: '1,000 records per request, OTLP in Protocol Buffers',
    requests: all(1_000),
    connections: 8,
    format: 'otlp',
  },
]

export function entriesPerRequest({ requests }: Pick<Scenario, 'requests'>): number {
  return requests.reduce((sum, { share, entries }) => sum + share * entries, 0)
}
