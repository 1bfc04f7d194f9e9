import { describe, expect, test } from 'vitest'
import {
  escapeControls,
  escapeJsonControls,
  painter,
  printNotice,
  redactUrl,
  table,
} from '../src/terminal.ts'
import { fakeContext } from './fake-context.ts'

const DANGEROUS = [...'\u0000\u0007\b\n\r\t\u007F\u2028\u202E\u2066'.split(''), '\u001B[2J', '\u009B31m']

describe('escapeControls', () => {
  test('escapes everything that controls a terminal or breaks a line', () => {
    const escaped = escapeControls(DANGEROUS.join('|'))
    expect(escaped).toBe(
      String.raw`\u0000|\u0007|\u0008|\n|\r|\t|\u007f|\u2028|\u202e|\u2066|\e[2J|\u009b31m`,
    )
  })

  test('does not change other strings', () => {
    const text = 'Straße 東京 👩‍💻 ~\\"'
    expect(escapeControls(text)).toBe(text)
  })
})

test('a notice is one line on stderr, safe to print', async () => {
  const { stderr, written } = fakeContext()
  await printNotice(stderr, 'the project a\n\u001B[31m does not exist')
  expect(written).toEqual({
    stdout: '',
    stderr: String.raw`sluice: the project a\n\e[31m does not exist` + '\n',
  })
})

test('escapeJsonControls keeps the JSON value', () => {
  const json = JSON.stringify({ text: DANGEROUS })
  const escaped = escapeJsonControls(json)
  expect(JSON.parse(escaped)).toEqual({ text: DANGEROUS })
  expect(escaped).toMatch(/^[\u0020-\u007E]*$/)
})

test('a painter without colours returns the string unchanged', () => {
  expect(painter(false)('red', 'text')).toBe('text')
  expect(painter(true)('red', 'text')).toBe('\u001B[31mtext\u001B[39m')
})

test('a table is aligned and safe to print', () => {
  const rows = [
    ['KEY', 'NAME'],
    ['key_1', 'a\u001B[31m'],
  ]
  expect(table(rows, painter(false))).toBe('KEY    NAME\nkey_1  a\\e[31m\n')
})

test('a redacted address contains no secret', () => {
  expect(redactUrl('redis://user:secret@host:6379/0?password=secret')).toBe('redis://host:6379/0')
  expect(redactUrl('http://host/?user=a@b')).toBe('http://host')
  expect(redactUrl('redis-cluster://:secret@one:1,[::1]:2')).toBe('redis-cluster://one:1,[::1]:2')
})
