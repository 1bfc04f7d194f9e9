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
const ofOtlp = 'records per request, OTLP in Protocol Buffers'

export const scenarios: readonly Scenario[] = (
  [
    ['batch-100', '100 entries per request', all(100), 64, 'json'],
    ['single', 'one entry per request', all(1), 64, 'json'],
    ['mix', 'of ten requests, seven with one entry, two with 20, one with 100', mix, 48, 'json'],
    ['otlp', `100 ${ofOtlp}`, all(100), 64, 'otlp'],
    ['otlp-1000', `1,000 ${ofOtlp}`, all(1_000), 8, 'otlp'],
  ] as const
).map(([name, title, requests, connections, format]) => ({ name, title, requests, connections, format }))

export function entriesPerRequest({ requests }: Pick<Scenario, 'requests'>): number {
  return requests.reduce((sum, { share, entries }) => sum + share * entries, 0)
}
