import { happens, integer, pick, type Random } from '@sluice/harness'
import { limits } from '@sluice/schema'

/** The choices that make a body: one entry, repeated, and filled with small parts. */
export interface CostlyBody {
  /** Where the parts are. */
  readonly place: keyof typeof places
  /** The parts, one after another. */
  readonly parts: readonly (keyof typeof parts)[]
  /** Precedes the parts. */
  readonly first: keyof typeof parts
  /** Follows the parts: what makes all the work before it useless. */
  readonly last: keyof typeof parts
  /** The size of an entry. */
  readonly entryBytes: number
  readonly totalBytes: number
}

/** What is before and after the members of an object, or the elements of an array. */
const places = {
  metadata: ['{"level":"info","message":"m","metadata":{', '}}', 'members'],
  fields: ['{"level":"info","message":"m",', '}', 'members'],
  list: ['{"level":"info","message":"m","metadata":{"a":[', ']}}', 'elements'],
  escapedList: ['{"level":"info","message":"m","metadata":{"\\n":1,"a":[', ']}}', 'elements'],
  object: ['{"level":"info","message":"m","metadata":{"a":{', '}}}', 'members'],
  message: ['{"level":"info","metadata":{},"message":[', ']}', 'elements'],
  text: ['{"level":"info","unknown":1,"message":"', '"}', 'characters'],
  stack: ['{"level":"info","message":"m","metadata":{"a":1e3},"stack":"', '"}', 'characters'],
  nothing: ['[', ']', 'elements'],
} as const

/** Values of elements and members, and what stands for them in a string. */
const parts = {
  emptyObject: ['{}', 'a'],
  emptyArray: ['[]', 'é'],
  emptyText: ['""', '😀'],
  digit: ['1', '\\\\'],
  fraction: ['1.0', '\\n'],
  longFraction: ['0.12345678901234567', '\\u0061'],
  integer: ['12345678901234567890', '\\ud83d\\ude00'],
  exponent: ['1e5', '\\t'],
  infinite: ['1e400', '\\u0000'],
  nested: ['[[[[[[[[]]]]]]]]', '\\/'],
  object: ['{"a":{"a":{"a":1}}}', '\\"'],
  escapedName: ['{"\\n":1}', '日'],
  text: ['"a b c"', 'abcdefgh'],
  escapedText: ['"\\u0061\\n\\\\"', '\\b'],
  loneSurrogate: ['"\\ud83d"', '\\ud83d'],
  literal: ['null', 'ü'],
  blank: ['\t \t \t 1', ' '],
} as const

const placeNames = Object.keys(places) as (keyof typeof places)[]
const partNames = Object.keys(parts) as (keyof typeof parts)[]
/** The sizes at which something changes: a step, the metadata, the scanner's memory, the body. */
const sizes = [2_000, 30_000, 65_000, 66_000, 250_000, 1_040_000, limits.bodyBytesMax - 2_000]

export function drawCostlyBody(random: Random): CostlyBody {
  return {
    place: pick(random, placeNames),
    parts: Array.from({ length: integer(random, 1, 3) }, () => pick(random, partNames)),
    first: pick(random, partNames),
    last: pick(random, partNames),
    entryBytes: pick(random, sizes),
    totalBytes: happens(random, 0.8) ? limits.bodyBytesMax : pick(random, sizes),
  }
}

/** Its body, as an array of entries. */
export function writeCostlyBody({ entryBytes, totalBytes, ...content }: CostlyBody): Buffer {
  const entry = entryOf(content, Math.min(entryBytes, totalBytes - 20))
  const count = Math.min(
    limits.entriesPerRequestMax,
    Math.floor((totalBytes - 2) / (Buffer.byteLength(entry) + 1)),
  )
  return Buffer.from(`[${Array.from({ length: count }, () => entry).join(',')}]`)
}

type Content = Pick<CostlyBody, 'place' | 'parts' | 'first' | 'last'>

function entryOf({ place, parts: used, first, last }: Content, bytesMax: number): string {
  const [head, tail, kind] = places[place]
  const write = (part: keyof typeof parts, number: number): string => {
    const [value, characters] = parts[part]
    if (kind === 'characters') return characters
    return kind === 'elements' ? `${value},` : `${nameOf(part, number)}:${value},`
  }
  const end = write(last, -1).replace(/,$/, '') + tail
  const texts = [head, write(first, -2)]
  let left = bytesMax - Buffer.byteLength(texts.join('') + end)
  for (let number = 0; left > 0; number += 1) {
    const text = write(used[number % used.length] ?? first, number)
    left -= Buffer.byteLength(text)
    if (left > 0) texts.push(text)
  }
  return texts.join('') + end
}

/** Names that differ, that are repeated, or that have an escape. */
function nameOf(part: keyof typeof parts, number: number): string {
  if (part === 'escapedName') return `"\\u0061${number.toString(36)}"`
  return part === 'escapedText' ? '"\\u0061"' : `"${number.toString(36)}"`
}
