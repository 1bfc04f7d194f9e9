import { describe, expect, it } from 'vitest'
import { findValues, parseFound, search, type Shape, valueBounds } from '../../src/intake/value-finder.ts'

const STEPS_MAX = 1_000

/** Runs a generator to its end. */
function finish<Result>(steps: Generator<undefined, Result>): { result: Result; steps: number } {
  for (let count = 0; count < STEPS_MAX; count += 1) {
    const { done, value } = steps.next()
    if (done === true) return { result: value, steps: count }
  }
  throw new Error('the work does not end')
}

function find(text: string, shape: Shape): unknown[] {
  const body = Buffer.from(text)
  return finish(findValues(body, shape)).result.map((found) => {
    if (found.start === found.end) return [found.tag]
    const parsed = parseFound(body, found)
    return [found.tag, 'error' in parsed ? parsed.error.code : parsed.value]
  })
}

const streams: Shape = {
  members: {
    streams: {
      elements: {
        group: 'stream',
        members: { stream: { take: 'labels' }, values: { elements: { take: 'line' } } },
      },
    },
  },
}

describe('ValueFinder', () => {
  it('finds values where the shape has them, in their order', () => {
    const text =
      '{"a":{"streams":[1]},"streams":[{"x":[{"values":[9]}],"stream":{"app":"x"},"values":[["1","a"],["2","b"]]},' +
      ' {"values":[["3","c"]],"stream":{"values":[1]}}, 7, [{"values":[8]}]],"z":{"values":[1]}}'
    expect(find(text, streams)).toEqual([
      ['stream'],
      ['labels', { app: 'x' }],
      ['line', ['1', 'a']],
      ['line', ['2', 'b']],
      ['stream'],
      ['line', ['3', 'c']],
      ['labels', { values: [1] }],
    ])
  })

  it('finds the members of all objects with the same name', () => {
    expect(find('{"streams":[{"values":[1],"values":[2]}],"streams":[]}', streams)).toEqual([
      ['stream'],
      ['line', 1],
      ['line', 2],
    ])
  })

  it('reads escaped names', () => {
    const text = String.raw`{"\u0073treams":[{"v\u0061lues":[{"\n":1,"\\":2}]}]}`
    expect(find(text, streams)).toEqual([['stream'], ['line', { '\n': 1, '\\': 2 }]])
  })

  it('has the end of the first of several values', () => {
    const body = Buffer.from('{"a":1} {"b":2}')
    const finder = finish(search(body, { take: 'event' }, 0)).result
    expect([finder.isInvalid, finder.rootEnd]).toEqual([true, 7])
    const next = finish(search(body, { take: 'event' }, finder.rootEnd)).result
    expect([next.isInvalid, next.rootEnd, next.found.length]).toEqual([false, 15, 1])
  })
})

const members = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"n${i}":1`).join()}}`

const arrays = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)

describe('a value that is larger than any record', () => {
  const one: Shape = { elements: { take: 'n' } }
  const codeOf = (value: string): unknown => {
    const [, [, code] = []] = find(`[1,${value},2]`, one) as [string, unknown][]
    return typeof code === 'string' && code.startsWith('too_') ? code : 'parsed'
  }
  const { weightMax, bytesMax, levelsMax } = valueBounds
  const long = 'x'.repeat(bytesMax / 4)

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
  ])('is not parsed: %s', (_what, value, code) => {
    expect(codeOf(value)).toBe(code)
  })

  it('is found in many steps', () => {
    const body = Buffer.from(`[${'1'.repeat(3_000_000)}]`)
    expect(finish(findValues(body, one)).steps).toBeGreaterThan(40)
  })
})
