import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { matcher } from '../src/match.ts'
import { parseQuery } from '../src/parse.ts'
import { queryLimits } from '../src/query.ts'
import { queryOf } from './support/query-of.ts'

const page = readFileSync(new URL('../../../docs/query-language.md', import.meta.url), 'utf8')
const [, json = ''] = /```json\n(.*?)```/s.exec(page) ?? []
// The metadata keeps its digits.
const [, metadata = ''] = /"metadata": (.*)\}\n$/s.exec(json) ?? []
const entry = { ...(JSON.parse(json) as Record<string, string>), metadata }

/** The cells of the tables in a part of the page. */
const cellsOf = (part: string): string[][] =>
  [...part.matchAll(/^\| (?=`)(.*) \|$/gm)].map(([, row = '']) => row.split(/ +\| /))
const codesOf = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
const [examples = '', rest = ''] = page.split('## Text with colons')
const [colons = '', errors = ''] = rest.split('## Errors')

describe('the examples of the documentation', () => {
  const rows = cellsOf(examples)
  it('are found', () => expect(rows.length).toBeGreaterThan(25))
  it.each(rows.flatMap(([matching]) => codesOf(matching)))('match: %s', (text) => {
    expect(matcher(queryOf(text))(entry)).toBe(true)
  })
  it.each(rows.flatMap(([, other]) => codesOf(other)))('do not match: %s', (text) => {
    expect(matcher(queryOf(text))(entry)).toBe(false)
  })
  it.each(cellsOf(errors))('have the error: %s', (text = '', position = '', message = '') => {
    const result = parseQuery(codesOf(text)[0] ?? '')
    const plain = message.replaceAll(/\\(.)/g, '$1').trim()
    expect(result).toEqual({ errors: [{ position: Number(position), message: plain }] })
  })
  it('that are text are no fields', () => {
    const [, texts = ''] = colons.split('without quotes: ')
    const words = codesOf(texts)
    expect(words).toHaveLength(6)
    for (const word of words)
      expect(queryOf(word)).toMatchObject({
        field: { name: 'message' },
        test: { type: 'contains', text: word },
      })
  })
  it('name the limits', () => {
    const { lengthMax, termsMax, depthMax } = queryLimits
    expect(page).toContain(
      `at most ${lengthMax.toLocaleString('en')} characters, ${termsMax} values, and ${depthMax} parentheses`,
    )
  })
})
