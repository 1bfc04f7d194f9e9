import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { describeFault } from '../../src/json/fault.ts'
import { type JsonObserver, JsonScanner } from '../../src/json/scanner.ts'
import { runs } from '../support/arbitrary-entry.ts'
import { anyStyle, toJson, validEntry } from '../support/index.ts'

function scan(text: string, stepBytes = Number.MAX_SAFE_INTEGER, observer?: JsonObserver): JsonScanner {
  const bytes = Buffer.from(text)
  const scanner = new JsonScanner(bytes, 0, bytes.length, observer)
  while (!scanner.isDone) scanner.scan(stepBytes)
  return scanner
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const resultOf = ({ at, state, isInvalid, escapedNameAt, inexactNumberAt }: JsonScanner): unknown => [
  at,
  state,
  isInvalid,
  escapedNameAt,
  inexactNumberAt,
]

const jsonLike = fc.stringMatching(/^[-0-9eE.+[\]{}",: \\utrfalsn]{0,24}$/)
const damaged = fc
  .tuple(validEntry, anyStyle, fc.nat(), fc.constantFrom('', '"', '\\', '}', ']', ',', '0', '\n', '\u0001'))
  .map(([entry, style, place, put]) => {
    const text = toJson(entry, style)
    const at = place % text.length
    return text.slice(0, at) + put + text.slice(at + 1)
  })

it('agrees with JSON.parse on whether any string is JSON', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), jsonLike, damaged, fc.json()), (text) => {
      expect(scan(text).isInvalid).toBe(!isJson(text))
    }),
    runs,
  )
})

it('has the same result whatever its steps are', () => {
  fc.assert(
    fc.property(fc.oneof(jsonLike, damaged, fc.json()), fc.integer({ min: 1, max: 7 }), (text, bytes) => {
      expect(resultOf(scan(text, bytes))).toEqual(resultOf(scan(text)))
    }),
    runs,
  )
})

it('works no more than a step at once, also within a token', () => {
  for (const text of [`"${'a'.repeat(1_000)}"`, '1'.repeat(1_000), ' '.repeat(999), '['.repeat(1_000)]) {
    const scanner = new JsonScanner(Buffer.from(text))
    scanner.scan(100)
    expect(scanner.at).toBe(100)
  }
})

it('accepts any number of levels', () => {
  expect(scan(`${'[{"a":'.repeat(1e4)}1${'}]'.repeat(1e4)}`).isInvalid).toBe(false)
  expect(scan(`${'[{"a":'.repeat(1e4)}1${']}'.repeat(1e4)}`).isInvalid).toBe(true)
})

it.each([
  ['{"a":1,"b":"\\n","c":[22.5,-3,999999999999999,0.12345678901234567890]}', -1, false],
  ['{"a":{"\\u0062":1},"c":2}', 7, false],
  ['{"\\\\":1}', 2, false],
  ['1e3', -1, true],
  ['{"a":[9007199254740993]}', -1, true],
])('finds the escaped names, and the numbers that may be inexact, of %s', (text, nameAt, isInexact) => {
  const { escapedNameAt, inexactNumberAt } = scan(text)
  expect([escapedNameAt, inexactNumberAt >= 0]).toEqual([nameAt, isInexact])
})

it('reports the outermost values and names, and the bytes that are not in their shortest form', () => {
  const reports: string[] = []
  const text = ' {"a" : [1, {}], "b":"\\u0061\\n"}'
  scan(text, 3, {
    depthMax: 1,
    beginValue: (at, _byte, depth, waste) => reports.push(`begin ${at} ${depth} ${waste}`),
    name: (start, end, depth) => reports.push(`name ${text.slice(start, end)} ${depth}`),
    endValue: (end, depth, waste) => reports.push(`end ${end} ${depth} ${waste}`),
  })
  expect(reports).toEqual([
    'begin 1 0 1',
    'name "a" 1',
    'begin 8 1 3',
    'end 15 1 4',
    'name "b" 1',
    'begin 21 1 5',
    'end 31 1 11',
    'end 32 0 11',
  ])
})

it('counts the bytes that the shortest form of a number may not have', () => {
  const numbers = ['0', '-12', '12345678901234567890', '-0', '1.50', '1000e-3']
  const wastes = numbers.map((number) => {
    let waste = -1
    const endValue: JsonObserver['endValue'] = (_end, _depth, atEnd) => void (waste = atEnd)
    scan(`[${number}]`, 3, { depthMax: 1, beginValue: () => {}, name: () => {}, endValue })
    return waste
  })
  expect(wastes).toEqual([0, 0, 0, 1, 3, 6])
})

it.each([
  ['{"a":1,}', 'unexpected "}" at line 1, column 8: expected a name in double quotes'],
  ['[\n "grüße",\n 😀]', 'unexpected "😀" at line 3, column 2: expected a value'],
  ['{"a":', 'the text ends too early at line 1, column 6: expected a value'],
])('a fault is described with its place: %j', (text, description) => {
  const bytes = Buffer.from(text)
  expect(describeFault(bytes, 0, bytes.length, scan(text))).toBe(description)
})
