import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeLine, formatFileName, parseFile, parseFileName } from '../../src/spool/batch-file.ts'

const parts = [['{"message":"1"}', '{"message":"é😀"}'], ['{"message":"3"}']] as const
const written = Buffer.concat(parts.map((entries) => encodeLine(entries)))

test('a file that is cut off anywhere has the entries of its complete lines', () => {
  const ends = [0, encodeLine(parts[0]).length, written.length]
  for (let bytes = 0; bytes <= written.length; bytes += 1) {
    const complete = ends.findLastIndex((end) => end <= bytes)
    const content = { entries: parts.slice(0, complete).flat(), lost: 0, bytes: ends[complete] }
    expect(parseFile(written.subarray(0, bytes))).toEqual(content)
  }
})

test('a file in which a byte was changed is never read wrongly, and the entries that are lost are counted', () => {
  fc.assert(
    fc.property(fc.nat(written.length - 1), fc.integer({ min: 1, max: 255 }), (index, change) => {
      const damaged = Buffer.from(written)
      damaged[index] = (damaged[index] ?? 0) ^ change
      const { entries } = parseFile(damaged)
      expect(entries.length).toBeLessThan(3)
      expect(parts.flat().filter((entry) => entries.includes(entry))).toEqual(entries)
    }),
    runsOf(1_000),
  )
  const damaged = Buffer.from(written)
  damaged[20] = 0
  expect(parseFile(damaged)).toEqual({ entries: parts[1], lost: 2, bytes: written.length })
})

test('the name of a file has its owner and its mark, and those of other programs are not read', () => {
  const name = { id: '0a1b2c3d', order: '000001764000000-000000001', idempotencyKey: 'a-b_C-1' }
  for (const attempt of [undefined, { wallMs: 1_764_000_000_000, entries: 100 }])
    expect(parseFileName(formatFileName({ ...name, attempt }))).toEqual({ ...name, attempt })
  for (const other of ['notes.txt', '0a1b2c3d.lock', '0a1b2c3d.1-1-key.batch', '../0a1b2c3d.batch', ''])
    expect(parseFileName(other)).toBeUndefined()
})
