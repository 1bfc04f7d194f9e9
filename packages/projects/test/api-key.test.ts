import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { API_KEY, createKey, generateApiKey, hashApiKey, isWellFormedApiKey } from '../src/api-key.ts'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Keys of the smallest and the largest 32-byte value, and some between. */
const keys = [0, 1, 0x7f, 0xa5, 0xff].map((byte) => generateApiKey(new Uint8Array(32).fill(byte)))

it.each(keys)(
  'a generated key is well-formed for any bytes, and with any character changed it is not: %s',
  (key) => {
    expect(key).toMatch(/^slk_[0-9A-Za-z]{49}$/)
    expect(isWellFormedApiKey(key)).toBe(true)
    const changed = Array.from(key, (right, i) =>
      Array.from(DIGITS.replace(right, ''), (wrong) => key.slice(0, i) + wrong + key.slice(i + 1)),
    ).flat()
    const swapped = Array.from(
      key.slice(1),
      (next, i) => `${key.slice(0, i)}${next}${key.charAt(i)}${key.slice(i + 2)}`,
    ).filter((typo) => typo !== key)
    expect([...changed, ...swapped].filter((typo) => isWellFormedApiKey(typo))).toEqual([])
    for (const more of [' ', '\n', '\0', '='])
      for (const typo of [key + more, more + key]) expect(isWellFormedApiKey(typo)).toBe(false)
  },
)

it('a generated key depends on every one of its bytes, and needs all of them', () => {
  const bytes = new Uint8Array(32)
  const others = Array.from({ length: 32 }, (_, i) => generateApiKey(bytes.with(i, 1)))
  expect(new Set([keys[0], ...others]).size).toBe(33)
  for (const length of [31, 33]) expect(() => generateApiKey(new Uint8Array(length))).toThrow(RangeError)
})

it.each(['', 'slk_', 'demo', 'sk_live_0123456789', `slk_${'0'.repeat(48)}é`, `slk_${'0'.repeat(49)}`])(
  'another string is no key: "%s"',
  (text) => {
    expect(isWellFormedApiKey(text)).toBe(false)
  },
)

describe('the documentation for secret scanners', () => {
  const page = readFileSync(new URL('../../../docs/keys.md', import.meta.url), 'utf8')
  /** The expression in the page, without its flags. */
  const documented = /```regex\n(.*)\n```/.exec(page)?.[1] ?? ''
  const found = (text: string): string[] =>
    [...text.matchAll(new RegExp(documented, 'g'))].map(([key]) => key)

  it('has an expression that finds every generated key in any string, and nothing else of it', () => {
    expect(documented).toBe(String.raw`\b${API_KEY.source}\b`)
    const generated = [...keys, ...Array.from({ length: 1_000 }, () => generateApiKey())]
    for (const key of generated) {
      const text = `SLUICE_API_KEY=${key}\n{"key":"${key}"}\nAuthorization: Bearer ${key}\n?key=${key}&x=1`
      expect(found(text)).toEqual([key, key, key, key])
    }
  })

  it.each([
    ['another prefix', (key: string) => `sk_live_${key.slice(4)}`],
    ['a character more', (key: string) => `${key}0`],
    ['a checksum that is too large', (key: string) => `${key.slice(0, 47)}5${key.slice(48)}`],
  ])('has an expression that does not find a string with %s', (_what, change) => {
    expect(keys.flatMap((key) => found(change(key)))).toEqual([])
  })

  it('says how the id of a key and its stored hash follow from the key', () => {
    const fields = { projectId: 'demo', name: '', scopes: ['ingest'], expiresAt: undefined } as const
    const { key, record } = createKey(fields, 0)
    expect(record.id).toBe(`key_${hashApiKey(key).slice(0, 16)}`)
    expect(hashApiKey(key)).toBe(createHash('sha256').update(key).digest('hex'))
    expect(page).toContain('sha256sum | cut -c1-16')
  })
})
