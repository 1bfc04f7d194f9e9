import { makeRowPrefix, parseJsonExactly, shapeRow } from '@sluice/rows'
import { anyStyle, invalidEntry, toJson, validEntry } from '@sluice/rows/testing'
import { type EntryError, limits } from '@sluice/schema'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { type BodyFormat, jsonFormat, ndjsonFormat } from '../../src/intake/body.ts'
import { Intake } from '../../src/intake/intake.ts'
import { Problem } from '../../src/problems.ts'
import { noScanner, parseEntries, sameId, stamp, textOf, validator } from '../support/intake.ts'

/** About a second. Of ten faults put into the finders and the tracker, nine showed within this number of runs. */
const runs = { numRuns: 400 }

const prefix = makeRowPrefix(stamp)
const intake = new Intake(validator, sameId, noScanner)

interface Body {
  readonly text: string
  readonly isNdjson: boolean
}

/** The rows and the errors of a body, or the problem of the whole body. */
interface Outcome {
  readonly problem?: string
  readonly isSingle?: boolean
  readonly entries?: number
  readonly rows?: string
  readonly errors: readonly string[]
}

/** @param steps into which the body is divided, about */
async function parse({ text, isNdjson }: Body, steps: number): Promise<Outcome> {
  const { findEntries } = isNdjson ? ndjsonFormat : jsonFormat
  const findInSteps: BodyFormat['findEntries'] = (bytes) => {
    const finder = findEntries(bytes)
    return { step: () => finder.step(Math.ceil(text.length / steps)) }
  }
  try {
    const format = { isNdjson, findEntries: findInSteps }
    const { rows, entries, answer } = await parseEntries(intake, Buffer.from(text), stamp, format)
    const { id, errors = [] } = JSON.parse(answer) as { id?: string; errors?: IndexedError[] }
    const listed = errors.map((error) => describeError(error, error.index))
    return { isSingle: id !== undefined, entries, rows: textOf(rows), errors: listed }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return { problem: error.code, errors: error.errors.map((each) => describeError(each as EntryError, 0)) }
  }
}

interface IndexedError extends EntryError {
  readonly index: number
}

const describeError = ({ path, code }: Pick<EntryError, 'path' | 'code'>, index: number): string =>
  `${index} ${path} ${code}`

/** The same, by parsing the whole body or line at once. */
function reference({ text, isNdjson }: Body): Outcome {
  const found = isNdjson ? linesOf(text) : entriesOf(text)
  if (typeof found === 'string') return { problem: found, errors: [] }
  if (found.entries.length > limits.entriesPerRequestMax) return { problem: 'too_many_entries', errors: [] }
  let rows = ''
  const errors: string[] = []
  for (const [index, value] of found.entries.entries()) {
    const shaped = shape(value)
    if ('row' in shaped) rows += shaped.row
    else errors.push(...shaped.errors.map((error) => describeError(error, index)))
  }
  const { isSingle } = found
  if (isSingle && errors.length > 0) return { problem: 'invalid_entry', errors }
  return { isSingle, entries: found.entries.length, rows, errors }
}

interface Entries {
  readonly isSingle: boolean
  readonly entries: readonly unknown[]
}

function entriesOf(text: string): Entries | string {
  if (!isJson(text)) return 'invalid_json'
  if (!/^\s*[[{]/.test(text)) return 'invalid_body'
  // Unlike JSON.parse, it keeps all digits of numbers, and has no bug with escaped names.
  const value = parseJsonExactly(text)
  if (Array.isArray(value)) return { isSingle: false, entries: value }
  const body = value as { logs?: unknown }
  if (!Object.hasOwn(body, 'logs')) return { isSingle: true, entries: [body] }
  return Array.isArray(body.logs) ? { isSingle: false, entries: body.logs } : 'invalid_body'
}

const invalidLine = Symbol('a line that is not JSON')

function linesOf(text: string): Entries {
  const lines = text.split('\n').filter((line) => !/^[ \t\r]*$/.test(line))
  const entries = lines.map((line) => (isJson(line) ? parseJsonExactly(line) : invalidLine))
  return { isSingle: false, entries }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function shape(value: unknown): { row: string } | { errors: Pick<EntryError, 'path' | 'code'>[] } {
  if (value === invalidLine) return { errors: [{ path: '', code: 'invalid_json' }] }
  if (!validator.isEntry(value)) return { errors: validator.explain(value) }
  const shaped = shapeRow(value, sameId.next(), prefix, true)
  return 'row' in shaped ? shaped : { errors: [shaped.error] }
}

/** The name of a member, and its value, both as JSON. */
type Member = readonly [name: string, value: string]

const object = (members: readonly Member[], blank = ''): string =>
  `{${members.map(([name, value]) => `${blank}${name}${blank}:${blank}${value}`).join(',')}${blank}}`
const array = (values: readonly string[], blank = ''): string =>
  `[${blank}${values.join(`${blank},`)}${blank}]`
const nested = (levels: number, value: string): string =>
  `${'{"a":'.repeat(levels)}${value}${'}'.repeat(levels)}`

const { metadataBytesMax, metadataDepthMax, serviceCharactersMax } = limits
const anyLevels = fc.integer({ min: metadataDepthMax - 2, max: metadataDepthMax + 1 })
const anyBlank = fc.constantFrom('', '', ' ', '\t\r')

const memberNames =
  '"level" "l\\u0065vel" "message" "metadata" "\\u006Detadata" "service" "logs" "a" "\\u0061" "__proto__" ""'
/** Members that may be repeated, invalid, spelled with escapes, or nested about as deep as metadata may be. */
const anyMember: fc.Arbitrary<Member> = fc.tuple(
  fc.constantFrom(...memberNames.split(' ')),
  fc.oneof(
    fc.constantFrom('"info"', '"\\u0069nfo"', '"\\ud800"', 'null', '1e400', '9007199254740993', '-0', '[]'),
    fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
    anyLevels.map((levels) => nested(levels, '1')),
    fc.constantFrom('😀', '\\n').map((unit) => `"${unit.repeat(serviceCharactersMax)}"`),
  ),
)
const info: Member = ['"level"', '"info"']
const message: Member = ['"message"', '"m"']

const anyEntry = fc.oneof(
  validEntry,
  invalidEntry.map(({ entry }) => entry),
)
const smallEntry = fc.oneof(
  fc.tuple(anyEntry, anyStyle).map(([entry, style]) => toJson(entry, style).replaceAll('\n', ' ')),
  fc
    .tuple(fc.array(anyMember, { maxLength: 5 }), anyBlank)
    .map(([members, blank]) => object([info, message, ...members], blank)),
  fc.array(anyMember, { maxLength: 3 }).map((members) => object(members)),
  fc.constantFrom('0', 'null', '"x"', '[]', '1e400'),
)

/** Metadata of about the maximum size when it is stored, which may be much longer in the body. */
const bulk = fc
  .tuple(
    fc.constantFrom(['0', 1], ['-0', 1], ['0.10000000000000000555', 3], ['"\\u0061"', 3], [' 12', 2]),
    fc.constantFrom(-1_000, -10, 10, 2_000),
    fc.oneof(fc.constant(1), anyLevels),
  )
  .map(([[unit, storedBytes], over, levels]) => {
    const count = Math.floor((metadataBytesMax + over - 6 * levels) / (storedBytes + 1))
    return nested(levels, array(Array<string>(count).fill(unit)))
  })

const largeMembers: readonly Member[] = [
  ['"level"', 'null'],
  ['"url"', '[]'],
  ['"stack"', `"${'é'.repeat(limits.stackCharactersMax)}"`],
  ['"service"', `"${'\\ud83d\\ude00'.repeat(serviceCharactersMax)}"`],
]
/** Entries that may be too large to be parsed. */
const largeEntry = fc.oneof(
  fc
    .tuple(
      fc.subarray([info, message]),
      fc.constantFrom('"metadata"', '"b"'),
      bulk,
      fc.subarray([...largeMembers]),
    )
    .map(([first, place, value, more]) => object([...first, [place, value], ...more])),
  // The last of them counts.
  fc
    .subarray([`"${'a'.repeat(13 * serviceCharactersMax)}"`, '"s"', 'null'], { minLength: 1 })
    .map((values) => object([info, message, ...values.map((value): Member => ['"service"', value])])),
)

const manyEntries = fc.integer({ min: 99, max: 101 }).map((length) => Array<string>(length).fill('{}'))
const anyEntries = (entry: fc.Arbitrary<string>): fc.Arbitrary<string[]> =>
  fc.oneof(
    { weight: 20, arbitrary: fc.array(entry, { maxLength: 3 }) },
    { weight: 1, arbitrary: manyEntries },
  )

/** An object with "logs", which may be repeated and of another type, and fields next to it. */
function logsObject(entry: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const value = fc.oneof(
    anyEntries(entry).map((entries) => array(entries)),
    fc.constantFrom('null', '{"logs":[]}', '1e400'),
  )
  const logs = fc.tuple(fc.constantFrom('"logs"', '"l\\u006fgs"'), value)
  return fc.array(fc.oneof(logs, anyMember), { minLength: 1, maxLength: 3 }).map((members) => object(members))
}

function bodies(entry: fc.Arbitrary<string>): fc.Arbitrary<Body> {
  const batch = fc.tuple(anyEntries(entry), anyBlank).map(([entries, blank]) => array(entries, blank))
  const line = fc.oneof(entry, fc.constantFrom('', ' ', '{', '1 2'))
  const lines = fc
    .tuple(anyEntries(line), fc.constantFrom('\n', '\r\n', '\n\n'))
    .map(([entries, end]) => entries.map((each) => each + end).join(''))
  return fc.oneof(
    fc.oneof(entry, batch, logsObject(entry)).map((text) => ({ text, isNdjson: false })),
    lines.map((text) => ({ text, isNdjson: true })),
  )
}

const damagedBody: fc.Arbitrary<Body> = fc
  .tuple(bodies(smallEntry), fc.nat(), fc.constantFrom('', '"', '\\', '}', ']', ',', '\n', '\ufeff'))
  .map(([{ text, isNdjson }, place, put]) => {
    const at = place % (text.length + 1)
    return { text: (text.slice(0, at) + put + text.slice(at + 1)).toWellFormed(), isNdjson }
  })

it('has the same rows and errors as if the whole body were parsed at once, in steps of any size', async () => {
  const anyBody = fc.oneof(
    { weight: 4, arbitrary: bodies(smallEntry) },
    { weight: 1, arbitrary: damagedBody },
    { weight: 1, arbitrary: bodies(largeEntry) },
  )
  const notEmpty = anyBody.filter(({ text }) => text !== '')
  await fc.assert(
    fc.asyncProperty(notEmpty, fc.constantFrom(1, 40), async (body, steps) => {
      expect(await parse(body, steps)).toEqual(reference(body))
    }),
    runs,
  )
})
