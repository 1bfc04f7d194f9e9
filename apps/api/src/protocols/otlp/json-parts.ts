import { type JsonObserver, JsonScanner } from '@sluice/rows'
import type { FoundValue } from './json-finder.ts'
import { orError, RecordError } from './log-record.ts'
import { checkBytes, recordLimits } from './value-budget.ts'

export const partLimits = {
  /** Texts in escapes may take several times their bytes. */
  sourceBytesMax: 2 * recordLimits.bytesMax,
  /** Each level of metadata takes at most four levels of messages. Official decoders have the same limit. */
  levelsMax: 100,
  /** Smaller values are parsed in a few milliseconds, whatever they consist of. */
  uncheckedBytesMax: 64 * 1024,
  /** Names that OTLP does not have: a parser needs about a microsecond for each that it has not seen before. */
  unknownNamesMax: 8_192,
} as const

/** Counting the parts of this many bytes takes less than a millisecond. */
const STEP_BYTES = 32 * 1024

/** The names in a record, a resource or a scope. Others are ignored. */
const knownNames: ReadonlySet<string> = new Set([
  'timeUnixNano',
  'observedTimeUnixNano',
  'severityNumber',
  'severityText',
  'body',
  'attributes',
  'droppedAttributesCount',
  'flags',
  'traceId',
  'spanId',
  'eventName',
  'name',
  'version',
  'key',
  'value',
  'values',
  'stringValue',
  'boolValue',
  'intValue',
  'doubleValue',
  'arrayValue',
  'kvlistValue',
  'bytesValue',
])
const KNOWN_BYTES_MAX = Math.max(...Array.from(knownNames, ({ length }) => length))

/** Counts the values and the unknown names of a JSON text. */
class PartCounter implements JsonObserver {
  readonly depthMax = Number.POSITIVE_INFINITY
  values = 0
  unknownNames = 0
  readonly #body: Buffer

  constructor(body: Buffer) {
    this.#body = body
  }

  beginValue(): void {
    this.values += 1
  }

  name(start: number, end: number): void {
    // Without the quotes.
    const isShort = end - start - 2 <= KNOWN_BYTES_MAX
    if (!isShort || !knownNames.has(this.#body.toString('latin1', start + 1, end - 1))) this.unknownNames += 1
  }

  endValue(): void {}
}

/**
 * Checks values before they are parsed, in steps: a MiB may consist of half a million values, or of a hundred thousand names. Each of them
 * would take the parser more than 100 ms, in one step.
 *
 * @param values in JSON that `JsonScanner` has checked
 * @returns why they are not parsed. Undefined if they may be
 */
export function* checkParts(
  body: Buffer,
  ...values: readonly (FoundValue | undefined)[]
): Generator<undefined, RecordError | undefined> {
  for (const value of values) {
    const error =
      value === undefined ? undefined : (orError(() => checkSize(value)) ?? (yield* countParts(body, value)))
    if (error !== undefined) return error
  }
  return undefined
}

/** @throws RecordError */
function checkSize({ start, end, bytes, levels }: FoundValue): undefined {
  const { sourceBytesMax, levelsMax } = partLimits
  checkBytes(end - start > sourceBytesMax ? end - start : bytes)
  if (levels > levelsMax) throw new RecordError('too_deep', `must have at most ${levelsMax} levels`)
}

function* countParts(
  body: Buffer,
  { start, end }: FoundValue,
): Generator<undefined, RecordError | undefined> {
  if (end - start <= partLimits.uncheckedBytesMax) return undefined
  const counter = new PartCounter(body)
  const scanner = new JsonScanner(body, start, end, counter)
  while (!scanner.isDone) {
    scanner.scan(STEP_BYTES)
    if (counter.values > recordLimits.partsMax)
      return new RecordError('too_large', `must have at most ${recordLimits.partsMax} values`)
    if (counter.unknownNames > partLimits.unknownNamesMax) {
      const message = `must have at most ${partLimits.unknownNamesMax} names that OTLP does not have`
      return new RecordError('too_many_names', message)
    }
    yield undefined
  }
  return undefined
}
