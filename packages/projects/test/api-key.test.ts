import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { API_KEY, generateApiKey, hashApiKey, isWellFormedApiKey } from '../src/api-key.ts'
import { createKey } from '../src/api-key.ts'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Keys of the smallest and the largest 32-byte value, and some between. */
const keys = [0, 1, 0x7f, 0xa5, 0xff].map((byte) => generateApiKey(new Uint8Array(32).fill(byte)))

describe('a generated key', () => {
  it.each(keys)('is well-formed for any bytes: %s', (key) => {
    expect(key).toMatch(/^slk_[0-9A-Za-z]{49}$/)
    expect(isWellFormedApiKey(key)).toBe(true)
  })

  it('depends on every one of its bytes', () => {
    const bytes = new Uint8Array(32)
    expect(generateApiKey(bytes)).toBe(keys[0])
    const others = Array.from({ length: 32 }, (_, i) => generateApiKey(bytes.with(i, 1)))
    expect(new Set([keys[0], ...others]).size).toBe(33)
  })

  it.each([0, 31, 33])('is not generated from %i bytes', (length) => {
    expect(() => generateApiKey(new Uint8Array(length))).toThrow(RangeError)
  })
})

describe('a mistyped key is rejected', () => {
  it.each(keys)('with any one character changed: %s', (key) => {
    const typos = Array.from(key, (right, i) =>
      Array.from(DIGITS.replace(right, ''), (wrong) => key.slice(0, i) + wrong + key.slice(i + 1)),
    ).flat()
    expect(typos.length).toBeGreaterThan(3_000)
    expect(typos.filter((typo) => isWellFormedApiKey(typo))).toEqual([])
  })

  it.each(keys)('with any two neighbours swapped: %s', (key) => {
    const typos = Array.from(
      key.slice(1),
      (next, i) => `${key.slice(0, i)}${next}${key.charAt(i)}${key.slice(i + 2)}`,
    ).filter((typo) => typo !== key)
    expect(typos.length).toBeGreaterThan(0)
    expect(typos.filter((typo) => isWellFormedApiKey(typo))).toEqual([])
  })

  it.each(['', ' ', '\n', '\0', '='])('with %j added at either end', (more) => {
    const [key = ''] = keys
    expect(isWellFormedApiKey(key + more)).toBe(more === '')
    expect(isWellFormedApiKey(more + key)).toBe(more === '')
  })

  it.each(['', 'slk_', 'demo', 'sk_live_0123456789', `slk_${'0'.repeat(48)}é`, `slk_${'0'.repeat(49)}`])(
    'that is another string: "%s"',
    (text) => {
      expect(isWellFormedApiKey(text)).toBe(false)
    },
  )
})

describe('hashApiKey', () => {
  it('is the SHA-256 of the whole key in hexadecimal', () => {
    const [key = ''] = keys
    expect(hashApiKey(key)).toBe(createHash('sha256').update(key).digest('hex'))
  })
})

describe('the documentation for secret scanners', () => {
  const page = readFileSync(new URL('../../../docs/keys.md', import.meta.url), 'utf8')
  /** The expression in the page, without its flags. */
  const documented = /```regex\n(.*)\n```/.exec(page)?.[1] ?? ''
  const found = (text: string): string[] =>
    [...text.matchAll(new RegExp(documented, 'g'))].map(([key]) => key)

  it('has the expression of the code, between word boundaries', () => {
    expect(documented).toBe(String.raw`\b${API_KEY.source}\b`)
  })

  it('has an expression that finds every generated key in any string, and nothing else of it', () => {
    const generated = [...keys, ...Array.from({ length: 1_000 }, () => generateApiKey())]
    for (const key of generated) {
      const text = `SLUICE_API_KEY=${key}\n{"key":"${key}"}\nAuthorization: Bearer ${key}\n?key=${key}&x=1`
      expect(found(text)).toEqual([key, key, key, key])
    }
  })

  it.each([
    ['another prefix', (key: string) => `sk_live_${key.slice(4)}`],
    ['a character less', (key: string) => key.slice(0, -1)],
    ['a character more', (key: string) => `${key}0`],
    ['a word before it', (key: string) => `x${key}`],
    ['a checksum that is too large', (key: string) => `${key.slice(0, 47)}5${key.slice(48)}`],
  ])('has an expression that does not find a string with %s', (_what, change) => {
    expect(keys.flatMap((key) => found(change(key)))).toEqual([])
  })

  it('says how the id of a key follows from the key', () => {
    const { key, record } = createKey(
      { projectId: 'demo', name: '', scopes: ['ingest'], expiresAt: undefined },
      0,
    )
    expect(record.id).toBe(`key_${createHash('sha256').update(key).digest('hex').slice(0, 16)}`)
    expect(page).toContain('sha256sum | cut -c1-16')
  })
})
