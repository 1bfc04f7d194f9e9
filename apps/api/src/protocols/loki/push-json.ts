import type { SourceRecord } from '../../intake/records.ts'
import { findValues, parseFound, type Shape } from '../../intake/value-finder.ts'
import { hasTooManyNames, isObject, type Members, tooManyNames } from '../entries.ts'
import { Stream } from './stream.ts'

/** `{"streams": [{"stream": {"app": "x"}, "values": [["<nanoseconds>", "<line>", {"<name>": "<value>"}]]}]}` */
const shape: Shape = {
  members: {
    streams: {
      elements: {
        group: 'stream',
        members: { stream: { take: 'labels' }, values: { elements: { take: 'value' } } },
      },
    },
  },
}

/** The lines of a push request in JSON. @throws Problem */
export function* pushedJson(body: Buffer): Generator<SourceRecord | undefined> {
  const found = yield* findValues(body, shape)
  let stream: Stream | { readonly error: typeof wrongLabels } = { error: wrongLabels }
  for (const [at, value] of found.entries()) {
    if (value.tag === 'stream') {
      // The labels may follow the lines.
      let labels: Members | undefined = {}
      for (let next = at + 1; next < found.length && found[next]?.tag !== 'stream'; next += 1) {
        const one = found[next]
        if (one?.tag !== 'labels') continue
        const parsed = parseFound(body, one)
        labels =
          'value' in parsed && isObject(parsed.value) && !hasTooManyNames(parsed.value)
            ? parsed.value
            : undefined
      }
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

function lineOf(value: unknown, stream: Stream): SourceRecord {
  if (!Array.isArray(value)) return wrongLine
  const [time, line, metadata = {}] = value as readonly unknown[]
  if (typeof line !== 'string' || !isObject(metadata)) return wrongLine
  if (hasTooManyNames(metadata)) return tooManyNames
  return stream.entryOf({ unixNano: readNanoseconds(time), line, metadata })
}

/** Clients send a text, because the number has more digits than a double. */
function readNanoseconds(value: unknown): bigint | undefined {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return /^\d{1,19}$/.test(text) ? BigInt(text) : undefined
}

const wrongLabels = { path: '', code: 'wrong_type', message: 'has a stream without valid labels' } as const
const wrongLine: SourceRecord = {
  error: {
    path: '',
    code: 'wrong_type',
    message: 'must be an array of a time, a line and structured metadata',
  },
}
