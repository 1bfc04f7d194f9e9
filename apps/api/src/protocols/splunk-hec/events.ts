import { limits } from '@sluice/schema'
import { type SourceRecord, tooManyRecords } from '../../intake/records.ts'
import { parseFound, search, type Shape } from '../../intake/value-finder.ts'
import { Problem } from '../../problems.ts'
import { isObject, notAnObject } from '../entries.ts'
import { linesOf } from '../lines.ts'
import { type LinesOrigin, recordOfEvent, recordOfLine } from './event.ts'

/** Most clients write one object after another. Some send an array. */
const shape: Shape = { take: 'event', elements: { take: 'event' } }

/** A step over whitespace. */
const STEP_BYTES = 64 * 1024

/**
 * The events of `/services/collector/event`.
 *
 * @throws Problem for a body that is not a sequence of JSON values, or has more values than a request may have records
 */
export function* jsonEvents(body: Buffer): Generator<SourceRecord | undefined> {
  let count = 0
  let values = 0
  for (let at = yield* skipBlanks(body, 0); at < body.length; at = yield* skipBlanks(body, at)) {
    values += 1
    // A body may have millions of arrays without an event.
    if (values > limits.recordsPerRequestMax) throw tooManyRecords()
    yield undefined
    const finder = yield* search(body, shape, at)
    if (finder.rootEnd < 0) throw new Problem('invalid_json', `Event ${count} is not JSON. ${finder.fault}`)
    for (const found of finder.found) {
      count += 1
      const parsed = parseFound(body, found)
      if ('error' in parsed) yield parsed
      else yield isObject(parsed.value) ? recordOfEvent(parsed.value) : notAnObject
    }
    at = finder.rootEnd
  }
}

/** The lines of `/services/collector/raw`. Bytes that are not UTF-8 become U+FFFD. */
export function* rawEvents(body: Buffer, origin: LinesOrigin): Generator<SourceRecord | undefined> {
  for (const line of linesOf(body)) {
    if (line === undefined) yield undefined
    else if (line.end - line.start > LINE_BYTES_MAX) yield tooLong
    else yield recordOfLine(body.toString('utf8', line.start, line.end), origin)
  }
}

const LINE_BYTES_MAX = 512 * 1024
const tooLong: SourceRecord = {
  error: { path: '/message', code: 'too_long', message: 'has more characters than a message can have' },
}

function* skipBlanks(body: Buffer, from: number): Generator<undefined, number> {
  let stepEnd = from + STEP_BYTES
  let at = from
  while (at < body.length && blanks.has(body[at] ?? 0)) {
    at += 1
    if (at === stepEnd) {
      stepEnd += STEP_BYTES
      yield undefined
    }
  }
  return at
}

/** JSON's whitespace. */
const blanks: ReadonlySet<number> = new Set(Buffer.from(' \t\r\n'))
