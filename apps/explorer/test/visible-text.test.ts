import { expect, it } from 'vitest'
import { piecesOf } from '../src/visible-text.ts'

const shown = (text: string, oneLine = false) =>
  piecesOf(text, [], oneLine)
    .map((piece) => (piece.kind === 'hidden' ? `[${piece.text}]` : piece.text))
    .join('')

it('shows controls, overrides of the direction, and invisible characters', () => {
  expect(shown('a\u0000b\u001b[31m\u007f')).toBe('a[^@]b[^[][31m[^?]')
  expect(shown('user\u202egnp.exe\u2066x\u200b\ufeff')).toBe('user[U+202E]gnp.exe[U+2066]x[U+200B][U+FEFF]')
  expect(shown('\u{e0041}tag \ud800half')).toBe('[U+E0041]tag [U+D800]half')
})

it('leaves letters of all scripts and emoji alone', () => {
  for (const text of ['שלום مرحبا', '👩‍👩‍👧', 'naïve Ω', 'می‌خواهم']) expect(shown(text)).toBe(text)
})

it('shows breaks in one line only', () => {
  expect(shown('a\n\tb')).toBe('a\n\tb')
  expect(shown('a\n\tb', true)).toBe('a[⏎][→]b')
})

it('marks what was searched for, in any case, and as text', () => {
  expect(piecesOf('Timeout (timeout) ', ['TIMEOUT', ''])).toEqual([
    { text: 'Timeout', kind: 'mark' },
    { text: ' (', kind: 'plain' },
    { text: 'timeout', kind: 'mark' },
    { text: ') ', kind: 'plain' },
  ])
  expect(piecesOf('a.b axb', ['a.b'])[0]).toEqual({ text: 'a.b', kind: 'mark' })
  expect(piecesOf('x\u0000timeout', ['timeout']).map(({ kind }) => kind)).toEqual(['plain', 'hidden', 'mark'])
})
