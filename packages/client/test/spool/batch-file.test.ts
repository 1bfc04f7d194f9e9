import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeAttempt, encodeEntries, parseBatchFile } from '../../src/spool/batch-file.ts'

const parts = [['{"message":"1"}', '{"message":"é😀"}'], ['{"message":"3"}']] as const
const written = Buffer.concat(parts.map((entries) => encodeEntries(entries)))
const attempted = Buffer.concat([written, encodeAttempt(1_764_000_000_000, 3)])

describe('a file', () => {
  test('has its entries, and the time of its first attempt', () => {
    const file = { entries: parts.flat(), isDamaged: false, lost: 0, readableBytes: written.length }
    expect(parseBatchFile(written)).toEqual({ ...file, attemptedAtMs: undefined })
    expect(parseBatchFile(attempted)).toEqual({ ...file, attemptedAtMs: 1_764_000_000_000 })
    expect(parseBatchFile(Buffer.alloc(0))).toEqual({
      entries: [],
      attemptedAtMs: undefined,
      isDamaged: false,
      lost: 0,
      readableBytes: 0,
    })
  })

  test('that is cut off anywhere has the entries of its complete parts, and no attempt', () => {
    const ends = [0, encodeEntries(parts[0]).length, written.length]
    for (let bytes = 0; bytes < attempted.length; bytes += 1) {
      const complete = ends.findLastIndex((end) => end <= bytes)
      expect(parseBatchFile(attempted.subarray(0, bytes))).toEqual({
        entries: parts.slice(0, complete).flat(),
        attemptedAtMs: undefined,
        isDamaged: !ends.includes(bytes),
        lost: 0,
        readableBytes: ends[complete],
      })
    }
  })

  test('in which a byte was changed is never read wrongly', () => {
    fc.assert(
      fc.property(fc.nat(attempted.length - 1), fc.integer({ min: 1, max: 255 }), (index, change) => {
        const damaged = Buffer.from(attempted)
        damaged[index] = (damaged[index] ?? 0) ^ change
        const { entries, isDamaged } = parseBatchFile(damaged)
        expect(isDamaged).toBe(true)
        expect(parts.flat().filter((entry) => entries.includes(entry))).toEqual(entries)
      }),
      { numRuns: 1_000 },
    )
  })

  test('with a damaged part in front of a complete one has the entries of the other, and a count of those that are lost', () => {
    for (const index of [0, 8, 30, 60]) {
      const damaged = Buffer.from(written)
      damaged[index] = 0
      const { entries, lost, isDamaged, readableBytes } = parseBatchFile(damaged)
      expect({ entries, isDamaged, readableBytes }).toEqual({
        entries: parts[1],
        isDamaged: false,
        readableBytes: written.length,
      })
      // If its head is damaged, the number is unknown.
      expect(lost).toBe(index < 30 ? 1 : 2)
    }
  })

  test('that lost a part in front of its attempt is damaged', () => {
    const lost = Buffer.concat([encodeEntries(parts[0]), encodeAttempt(1, 3)])
    expect(parseBatchFile(lost)).toMatchObject({ isDamaged: true, attemptedAtMs: 1 })
  })
})
