import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
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

const resultOf = ({ at, state, isInvalid, escapedNameAt, inexactNumberAt }: JsonScanner): object => ({
  at,
  state,
  isInvalid,
  escapedNameAt,
  inexactNumberAt,
})

const faultOf = (text: string): string => {
  const bytes = Buffer.from(text)
  return describeFault(bytes, 0, bytes.length, scan(text))
}

const jsonLike = fc.stringMatching(/^[-0-9eE.+[\]{}",: \\utrfalsn]{0,24}$/)
const damaged = fc
  .tuple(validEntry, anyStyle, fc.nat(), fc.constantFrom('', '"', '\\', '}', ']', ',', '0', '\n', '\u0001'))
  .map(([entry, style, place, put]) => {
    const text = toJson(entry, style)
    const at = place % text.length
    return text.slice(0, at) + put + text.slice(at + 1)
  })

describe('the scanner', () => {
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
    expect(scan(`${'['.repeat(1e5)}${']'.repeat(1e5)}`).isInvalid).toBe(false)
    expect(scan(`${'[{"a":'.repeat(1e4)}1${'}]'.repeat(1e4)}`).isInvalid).toBe(false)
    expect(scan(`${'[{"a":'.repeat(1e4)}1${']}'.repeat(1e4)}`).isInvalid).toBe(true)
  })

  it.each([
    ['{"a":1,"b":"\\n","c":[22.5,-3,999999999999999,0.12345678901234567890]}', -1, false],
    ['{"a":{"\\u0062":1},"c":2}', 7, false],
    ['{"\\\\":1}', 2, false],
    ['1e3', -1, true],
    ['9007199254740993.5', -1, true],
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

  it.each([
    ['0', 0],
    ['-12', 0],
    ['12345678901234567890', 0],
    ['-0', 1],
    ['1.50', 3],
    ['0.10000000000000000555', 21],
    ['1000e-3', 6],
  ])('counts the bytes that the shortest form of a number may not have: %s', (number, waste) => {
    let reported = -1
    scan(`[${number}]`, 3, {
      depthMax: 1,
      beginValue: () => {},
      name: () => {},
      endValue: (_end, _depth, atEnd) => (reported = atEnd),
    })
    expect(reported).toBe(waste)
  })
})

describe('a fault', () => {
  it.each([
    ['{"a":1,}', 'unexpected "}" at line 1, column 8: expected a name in double quotes'],
    ['[1 2]', 'unexpected "2" at line 1, column 4: expected "," or "]"'],
    ['{"a" 1}', 'unexpected "1" at line 1, column 6: expected ":"'],
    ['{}x', 'unexpected "x" at line 1, column 3: expected the end of the text'],
    ['[\n "grüße",\n 😀]', 'unexpected "😀" at line 3, column 2: expected a value'],
    [
      '["a\nb"]',
      'unexpected "\\n" at line 1, column 4: expected the rest of a string, whose control characters must be escaped',
    ],
    ['"a" "b"', `unexpected '"' at line 1, column 5: expected the end of the text`],
    ['{"a":', 'the text ends too early at line 1, column 6: expected a value'],
    ['', 'the text ends too early at line 1, column 1: expected a value'],
    [
      '01',
      'unexpected "1" at line 1, column 2: expected the end of a number, which must not have leading zeros',
    ],
  ])('is described with its place: %j', (text, description) => {
    expect(faultOf(text)).toBe(description)
  })

  it('never has a long description', () => {
    fc.assert(
      fc.property(fc.oneof(jsonLike, damaged, fc.string({ unit: 'binary' })), (text) => {
        fc.pre(!isJson(text))
        expect(faultOf(text).length).toBeLessThan(160)
      }),
      runs,
    )
  })
})
