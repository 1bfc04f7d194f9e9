import { expect, it } from 'vitest'
import { findValues, parseFound, valueBounds } from '../../src/intake/value-finder.ts'

const { weightMax, bytesMax, levelsMax } = valueBounds
const long = 'x'.repeat(bytesMax / 4)
const members = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"n${i}":1`).join()}}`
const arrays = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)

it.each([
  ['many members', members(9_000), 'too_large'],
  ['fewer members', members(5_000), 'parsed'],
  ['many objects', `[${'{},'.repeat(30_000)}1]`, 'too_large'],
  ['a long name', `{"${'n'.repeat(weightMax)}":1}`, 'too_large'],
  ['many levels', arrays(levelsMax + 1), 'too_deep'],
  ['the most levels', arrays(levelsMax), 'parsed'],
  ['a long string', `"${'x'.repeat(bytesMax)}"`, 'too_large'],
  ['short strings, which are as expensive as numbers', `["${'abc","'.repeat(12_000)}"]`, 'too_large'],
  ['a long string that can only become metadata', `[[[[["${'x'.repeat(weightMax)}"]]]]]`, 'too_large'],
  ['long strings', `{"event":{"error":{"message":"${long}","stack":"${long}"}}}`, 'parsed'],
  ['blanks', `{"a":${' '.repeat(weightMax)}1}`, 'parsed'],
  ['escapes', `{"a":"${String.raw`\u0041`.repeat(65_536)}"}`, 'parsed'],
])('a value that is larger than any record is not parsed: %s', (_what, value, expected) => {
  const body = Buffer.from(`[1,${value},2]`)
  const steps = findValues(body, { elements: { take: 'n' } })
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  const codes = step.value.map((found) => {
    const parsed = parseFound(body, found)
    return 'error' in parsed ? parsed.error.code : 'parsed'
  })
  expect(codes).toEqual(['parsed', expected, 'parsed'])
})
