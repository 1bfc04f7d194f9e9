import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { repairSurrogates, utf8Bytes } from '../../src/encode.ts'

test('the size of a text is that of its UTF-8', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(utf8Bytes(text)).toBe(Buffer.byteLength(text))
    }),
  )
})

describe('half of a surrogate pair', () => {
  test('is replaced', () => {
    const cut = '😀'.slice(0, 1)
    const text = { [cut]: `a${cut}`, b: '😀'.slice(1), whole: '😀' }
    expect(JSON.parse(repairSurrogates(JSON.stringify(text)))).toEqual({
      '\uFFFD': 'a\uFFFD',
      b: '\uFFFD',
      whole: '😀',
    })
  })

  test('is not confused with a text that looks like its escape', () => {
    const text = { a: String.raw`\ud83d \\ud83d`, b: String.raw`\u0041` }
    expect(JSON.parse(repairSurrogates(JSON.stringify(text)))).toEqual(text)
  })

  test('never remains, and nothing else changes', () => {
    const unit = fc.constantFrom('\uD83D', '\uDE00', '\\', 'ud83d', '"', 'a', '\n')
    fc.assert(
      fc.property(fc.string({ unit }), (text) => {
        expect(JSON.parse(repairSurrogates(JSON.stringify(text)))).toBe(text.toWellFormed())
      }),
    )
  })
})
