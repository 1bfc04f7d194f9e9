import type { SourceRecord } from '../../intake/records.ts'
import { findValues, type FoundValue, parseFound, type Shape } from '../../intake/value-finder.ts'
import { Problem } from '../../problems.ts'
import { hasTooManyNames, isObject, type Members, tooManyNames } from '../entries.ts'
import { LABELS_CHARACTERS_MAX } from './labels.ts'
import { Stream } from './stream.ts'

/** `{"streams": [{"stream": {"app": "x"}, "values": [["<nanoseconds>", "<line>", {"<name>": "<value>"}]]}]}` */
const shape: Shape = {
  other: 'other',
  group: 'request',
  members: {
    streams: {
      other: 'other',
      group: 'streams',
      elements: {
        other: 'other',
        group: 'stream',
        members: {
          stream: { take: 'labels' },
          values: { other: 'other', group: 'values', elements: { take: 'value' } },
        },
      },
    },
  },
}

/** The lines of a push request in JSON. @throws Problem */
export function* pushedJson(body: Buffer): Generator<SourceRecord | undefined> {
  const found = yield* findValues(body, shape)
  checkShape(found)
  let stream: Stream | { readonly error: typeof wrongLabels } = { error: wrongLabels }
  for (const [at, value] of found.entries()) {
    if (value.tag === 'stream') {
      const labels = labelsOf(body, found, at)
      stream = labels === undefined ? { error: wrongLabels } : new Stream(labels)
      yield undefined
    } else if (value.tag === 'value') {
      if (!(stream instanceof Stream)) {
        yield stream
        continue
      }
      const parsed = parseFound(body, value)
      yield 'error' in parsed ? parsed : lineOf(parsed.value, stream)
    }
  }
}

/** Lines that are not found must not be acknowledged: clients drop what is answered with 204. @throws Problem */
function checkShape(found: readonly FoundValue[]): void {
  const tags = new Set<string>()
  let isComplete = true
  for (const { tag } of found) {
    // Each stream must have values. Null stands for none.
    if (tag === 'stream' && !isComplete) throw wrongShape()
    if (tag === 'stream' || tag === 'values') isComplete = tag === 'values'
    tags.add(tag)
  }
  if (tags.has('other') || !tags.has('streams') || !isComplete) throw wrongShape()
}

/**
 * The labels of a stream. They may follow its lines, and the last ones count.
 *
 * @param at the place of the stream in what was found
 * @returns undefined if they are malformed or too large
 */
function labelsOf(body: Buffer, found: readonly FoundValue[], at: number): Members | undefined {
  let last: FoundValue | undefined
  for (let next = at + 1; next < found.length && found[next]?.tag !== 'stream'; next += 1) {
    if (found[next]?.tag === 'labels') last = found[next]
  }
  if (last === undefined) return {}
  if (last.end - last.start > BYTES_PER_CHARACTER_MAX * LABELS_CHARACTERS_MAX) return undefined
  const parsed = parseFound(body, last)
  if (!('value' in parsed) || !isObject(parsed.value) || hasTooManyNames(parsed.value)) return undefined
  return JSON.stringify(parsed.value).length > LABELS_CHARACTERS_MAX ? undefined : parsed.value
}

/** An escape in JSON. */
const BYTES_PER_CHARACTER_MAX = 6

function lineOf(value: unknown, stream: Stream): SourceRecord {
  if (!Array.isArray(value)) return wrongLine
  const [time, line, metadata = {}, ...more] = value as readonly unknown[]
  if (more.length > 0 || typeof line !== 'string' || !isObject(metadata)) return wrongLine
  if (hasTooManyNames(metadata)) return tooManyNames
  return stream.entryOf({ unixNano: readNanoseconds(time), line, metadata })
}

/** Clients send a text, because the number has more digits than a double. */
function readNanoseconds(value: unknown): bigint | undefined {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return /^\d{1,19}$/.test(text) ? BigInt(text) : undefined
}

function wrongShape(): Problem {
  return new Problem(
    'invalid_body',
    'The body has no lines in the expected place. Send {"streams": [{"stream": {labels}, "values": [["<nanoseconds>", "<line>"]]}]}.',
  )
}

const wrongLabels = { path: '', code: 'wrong_type', message: 'has a stream without valid labels' } as const
const wrongLine: SourceRecord = {
  error: {
    path: '',
    code: 'wrong_type',
    message: 'must be an array of a time, a line and structured metadata',
  },
}
