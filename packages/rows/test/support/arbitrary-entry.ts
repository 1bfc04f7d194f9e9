import * as fc from 'fast-check'
import { entryFields, entrySchema } from '@sluice/schema'

type Json = Record<string, unknown>

/**
 * Strings with any Unicode character except lone surrogates. Half of them consist of characters with a meaning in some format:
 * tabs, newlines, backslashes, quotes, NUL, and sequences that look like their escapes.
 */
export function anyText(maxLength: number): fc.Arbitrary<string> {
  const meaningful = fc.constantFrom(
    ...Array.from('\t\n\r\\\0\b\v\u001f\u007f"\'/, é😀a\u2028\ufeff\ufffd\uffff'),
    ...String.raw`\N \t \n \\ \u0000`.split(' '),
  )
  // A unit has at most two characters, apart from `\u0000`.
  const units = { maxLength: Math.floor(maxLength / 2) }
  return fc.oneof(fc.string({ unit: 'binary', ...units }), fc.string({ unit: meaningful, ...units }))
}

/** Any names, and names with a special meaning in objects or URLs. */
const anyName = fc.oneof(
  anyText(12),
  fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', 'toJSON', 'rawJSON'),
  fc.constantFrom('', '0', '1', '-1', 'a.b', 'a/b', 'a~b', '~0', '~1', 'length', 'id', 'project_id'),
)

/** Numbers that JSON.stringify writes unchanged, and larger ones, whose digits must all be kept. */
const anyNumber = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true, max: 9e15, min: -9e15 }),
  fc.integer(),
  fc.bigInt({ min: -(2n ** 200n), max: 2n ** 200n }).map((integer) => rawJson(String(integer))),
  fc.constantFrom(...['1e400', '-1E+400', '9007199254740993', '9223372036854775807.5'].map(rawJson)),
)

/** A number with these digits. TypeScript's library does not declare JSON.rawJSON yet. */
function rawJson(digits: string): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(digits)
}

/** An object with own members only, `__proto__` included. */
const objectOf = (members: readonly (readonly [string, unknown])[]): Json => Object.fromEntries(members)

const anyValue: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.oneof(anyText(40), anyNumber, fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(anyName, tie('value')), { maxLength: 4 }).map(objectOf),
  ),
})).value

/** A date-time of 1970–2261 in any allowed form, and its time in microseconds since 1970. */
export const anyTimestamp: fc.Arbitrary<{ text: string; epochUs: bigint }> = fc
  .record({
    epochS: fc.integer({ min: Date.UTC(1970, 0, 2) / 1_000, max: Date.UTC(2261, 11, 30) / 1_000 }),
    fraction: fc.stringMatching(/^\d{0,9}$/),
    point: fc.constantFrom('.', ','),
    offsetMinutes: fc.oneof(fc.constant(undefined), fc.integer({ min: -1_439, max: 1_439 })),
    form: fc.record({ z: fc.constantFrom('Z', 'z', ''), t: fc.constantFrom('T', 't'), colon: fc.boolean() }),
  })
  .map(({ epochS, fraction, point, offsetMinutes, form }) => {
    const local = new Date((epochS + (offsetMinutes ?? 0) * 60) * 1_000).toISOString()
    const offset = offsetMinutes === undefined ? form.z : offsetText(offsetMinutes, form.colon)
    return {
      text: `${local.slice(0, 10)}${form.t}${local.slice(11, 19)}${fraction && point + fraction}${offset}`,
      epochUs: BigInt(epochS) * 1_000_000n + BigInt(fraction.padEnd(6, '0').slice(0, 6)),
    }
  })

const twoDigits = (number: number): string => String(Math.floor(number)).padStart(2, '0')

function offsetText(minutes: number, hasColon: boolean): string {
  const [hours, rest] = [Math.abs(minutes) / 60, Math.abs(minutes) % 60]
  return `${minutes < 0 ? '-' : '+'}${twoDigits(hours)}${hasColon ? ':' : ''}${twoDigits(rest)}`
}

const orNull = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
  fc.oneof(arbitrary, fc.constant(null))
const choice = (name: 'level' | 'environment' | 'source'): fc.Arbitrary<string | null> =>
  fc.constantFrom(...entrySchema.properties[name].enum)

/** Valid entries with all kinds of fields. To send one, convert it with JSON.stringify. */
export const validEntry: fc.Arbitrary<Json> = fc
  .tuple(
    fc.record(
      {
        level: choice('level'),
        message: anyText(200),
        environment: choice('environment'),
        source: choice('source'),
        service: orNull(anyText(40)),
        url: orNull(anyText(80)),
        pathname: orNull(anyText(80)),
        stack: orNull(anyText(200)),
        timestamp: orNull(anyTimestamp.map(({ text }) => text)),
        metadata: orNull(fc.array(fc.tuple(anyName, anyValue), { maxLength: 6 }).map(objectOf)),
      },
      { requiredKeys: ['level', 'message'] },
    ),
    fc.array(fc.tuple(anyName, anyValue), { maxLength: 3 }),
  )
  // The known fields come last: an unknown field must not replace one of them. `logs` would make a single entry a batch request.
  .map(([fields, members]) => {
    const unknown = members.filter(([name]) => !entryFields.has(name) && name !== 'logs')
    return objectOf([...unknown, ...Object.entries(fields)])
  })

/** The expected metadata of a row, as JSON: the members of the entry's metadata, and the unknown fields with other names, as they are sent. */
export function foldedMetadata(entry: Json): string {
  const own = (entry['metadata'] ?? {}) as Json
  const unknown = Object.entries(entry).filter(
    ([name]) => !entryFields.has(name) && !Object.hasOwn(own, name),
  )
  const members = [...Object.entries(own), ...unknown]
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`
}
