import { describe, expect, test } from 'vitest'
import { escapeControls, escapeJsonControls, painter, table } from '../src/terminal.ts'

const DANGEROUS = [
  '\u0000',
  '\u0007',
  '\b',
  '\n',
  '\r',
  '\t',
  '\u001B[2J',
  '\u007F',
  '\u009B31m',
  '\u2028',
  '\u202E',
  '\u2066',
]

describe('escapeControls', () => {
  test('leaves nothing that a terminal obeys or that breaks a line', () => {
    const escaped = escapeControls(DANGEROUS.join('|'))
    expect(escaped).toBe(
      String.raw`\u0000|\u0007|\u0008|\n|\r|\t|\e[2J|\u007f|\u009b31m|\u2028|\u202e|\u2066`,
    )
  })

  test('leaves all other text alone', () => {
    const text = 'Straße 東京 👩‍💻 ~\\"'
    expect(escapeControls(text)).toBe(text)
  })
})

test('escapeJsonControls keeps the value', () => {
  const json = JSON.stringify({ text: DANGEROUS })
  const escaped = escapeJsonControls(json)
  expect(JSON.parse(escaped)).toEqual({ text: DANGEROUS })
  expect(escaped).toMatch(/^[\u0020-\u007E]*$/)
})

test('a painter without colours changes nothing', () => {
  expect(painter(false)('red', 'text')).toBe('text')
  expect(painter(true)('red', 'text')).toBe('\u001B[31mtext\u001B[39m')
})

test('a table is aligned, and safe to print', () => {
  const rows = [
    ['KEY', 'NAME'],
    ['key_1', 'a\u001B[31m'],
  ]
  expect(table(rows, painter(false))).toBe('KEY    NAME\nkey_1  a\\e[31m\n')
})
