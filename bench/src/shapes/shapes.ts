import { readBody, recordedBodies, recordedEntries } from '@sluice/harness/recorded-bodies'
import { gzipSync } from 'node:zlib'

/** A request with 100 entries. */
export interface Shape {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

type Entry = (typeof recordedEntries)[number]

/** Entries as `JSON.stringify` writes them. */
function stringified(
  name: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): Shape {
  return {
    name: `JSON.stringify${name}`,
    url: '/v1/logs',
    headers: { 'content-type': 'application/json', ...headers },
    body: Buffer.from(body),
  }
}

/** Every entry has one of the stack traces. */
function withStacks(entries: readonly Entry[]): Entry[] {
  const stacks = entries.flatMap(({ stack = [] }) => stack)
  return entries.map((entry, i) => ({ ...entry, stack: stacks[i % stacks.length] ?? '' }))
}

const json = JSON.stringify(recordedEntries)
const lines = recordedEntries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
const invalid = recordedEntries.map((entry, i) => (i === 50 ? { ...entry, level: 'notice' } : entry))

/** What all others are compared with. */
export const reference = stringified('', json)

export const shapes: readonly Shape[] = [
  stringified(', the reference again', json),
  stringified(', indented', JSON.stringify(recordedEntries, null, 2)),
  stringified(', NDJSON', lines, { 'content-type': 'application/x-ndjson' }),
  stringified(', gzip', gzipSync(json), { 'content-encoding': 'gzip' }),
  stringified(', a stack trace in each', JSON.stringify(withStacks(recordedEntries))),
  stringified(', one of 100 invalid', JSON.stringify(invalid)),
  ...recordedBodies.map(({ name, encoder, url, contentType }) => ({
    name: encoder,
    url,
    headers: { 'content-type': contentType },
    body: readBody(name),
  })),
]
