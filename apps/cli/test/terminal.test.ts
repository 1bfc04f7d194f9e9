import { expect, test } from 'vitest'
import { escapeControls, escapeJsonControls, painter, redactUrl, table } from '../src/terminal.ts'

const DANGEROUS = [...'\u0000\u0007\b\n\r\t\u007F\u2028\u202E\u2066'.split(''), '\u001B[2J', '\u009B31m']

test('everything that controls a terminal or breaks a line is escaped, and nothing else', () => {
  const text = 'Straße 東京 👩‍💻 ~\\"'
  expect(escapeControls(`${DANGEROUS.join('|')}${text}`)).toBe(
    String.raw`\u0000|\u0007|\u0008|\n|\r|\t|\u007f|\u2028|\u202e|\u2066|\e[2J|\u009b31m` + text,
  )
})

test('escapeJsonControls keeps the JSON value', () => {
  const escaped = escapeJsonControls(JSON.stringify({ text: DANGEROUS }))
  expect(JSON.parse(escaped)).toEqual({ text: DANGEROUS })
  expect(escaped).toMatch(/^[\u0020-\u007E]*$/)
})

test('a table is aligned, coloured where colours are on, and safe to print', () => {
  const rows = [
    ['KEY', 'NAME'],
    ['key_1', 'a\u001B[31m'],
  ]
  expect(table(rows, painter(false))).toBe('KEY    NAME\nkey_1  a\\e[31m\n')
  expect(table(rows, painter(true))).toBe('\u001B[2mKEY    NAME\u001B[22m\nkey_1  a\\e[31m\n')
})

test.each([
  ['redis://user:secret@host:6379/0?password=secret', 'redis://host:6379/0'],
  ['http://host/?user=a@b', 'http://host'],
  ['redis-cluster://:secret@one:1,[::1]:2', 'redis-cluster://one:1,[::1]:2'],
])('a redacted address contains no secret: %s', (url, redacted) => {
  expect(redactUrl(url)).toBe(redacted)
})
