import { varint } from '@sluice/harness/otlp-logs'
import { limits } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { Problem } from '../../../src/problems.ts'
import { decodeSnappy } from '../../../src/protocols/loki/snappy.ts'

const block = (length: number, ...elements: readonly (readonly number[] | Buffer)[]): Buffer =>
  Buffer.concat([varint(length), ...elements.map((part) => Buffer.from(part))])
const literal = (text: string): number[] => [(text.length - 1) << 2, ...Buffer.from(text)]

let held = 0
const decode = (bytes: Buffer): string => decodeSnappy(bytes, (count) => (held = count)).toString()

describe('decodeSnappy', () => {
  const long = 'x'.repeat(70_000)
  const last = long.length - 1
  const lastBytes = [last & 255, (last >> 8) & 255, last >> 16]
  const far = 'y'.repeat(59)

  it.each<[what: string, bytes: Buffer, decoded: string]>([
    ['a literal with a length of 1 byte', block(60, [60 << 2, 59], Buffer.alloc(60, 'x')), long.slice(0, 60)],
    ['of 2 bytes', block(300, [61 << 2, 43, 1], Buffer.alloc(300, 'x')), long.slice(0, 300)],
    ['of 3 bytes', block(70_000, [62 << 2, ...lastBytes], Buffer.from(long)), long],
    ['of 4 bytes', block(70_000, [63 << 2, ...lastBytes, 0], Buffer.from(long)), long],
    ['a copy with an offset of 11 bits', block(8, literal('abcd'), [1, 4]), 'abcdabcd'],
    ['of 2 bytes', block(7, literal('abcd'), [(2 << 2) | 2, 4, 0]), 'abcdabc'],
    ['of 4 bytes', block(7, literal('abcd'), [(2 << 2) | 3, 3, 0, 0, 0]), 'abcdbcd'],
    ['a copy that contains what it writes', block(12, literal('ab'), [(9 << 2) | 2, 2, 0]), 'ab'.repeat(6)],
    [
      'a copy of what is far away',
      block(541, ...Array<number[]>(9).fill(literal(far)), literal('end'), [(3 << 2) | 1 | (2 << 5), 22]),
      `${far.repeat(9)}end${far.slice(0, 7)}`,
    ],
  ])('decodes %s', (_what, bytes, decoded) => {
    expect(decode(bytes)).toBe(decoded)
  })

  it.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['an endless length', Buffer.from([255, 255, 255, 255, 255, 1])],
    ['a literal that ends too early', block(4, [3 << 2, 97])],
    ['a literal without its length', block(60, [60 << 2])],
    ['a copy from before the start', block(8, literal('abcd'), [1, 5])],
    ['a copy that is longer than declared', block(7, literal('abcd'), [1, 4])],
    ['a block that is shorter than declared', block(9, literal('abcd'), [1, 4])],
    ['elements after the end', block(3, literal('abc'), literal('d'))],
    ['a length that no elements of this size have', block(1_000_000, literal('abc'))],
  ])('rejects %s', (_what, bytes) => {
    expect(() => decode(bytes)).toThrow(Problem)
  })

  it('rejects a block that becomes too large, before memory is allocated for it', () => {
    held = 0
    const full = Buffer.alloc(limits.bodyBytesMax)
    expect(() => decode(block(1_000_000, literal('abc')))).toThrow('malformed')
    expect(() => decode(block(full.length + 1, full))).toThrow('at most')
    expect(held).toBe(0)
    expect(() => decode(block(full.length, full))).toThrow('malformed')
    expect(held).toBe(full.length)
    expect(() => decode(block(2 ** 32 - 1, literal('abcd')))).toThrow('at most')
  })

  it('rejects each beginning of a block', () => {
    const valid = block(30, literal('abcdefgh'), [1, 4], [(9 << 2) | 2, 12, 0], literal('ijklmnop'))
    expect(decode(valid)).toBe('abcdefghefghabcdefghefijklmnop')
    for (let end = 0; end < valid.length; end += 1)
      expect(() => decode(valid.subarray(0, end))).toThrow(Problem)
  })
})
