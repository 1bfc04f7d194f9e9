import { describe, expect, it } from 'vitest'
import { partStart } from '../src/parts.ts'

const PART_BYTES = 128 * 1024
const STEP_BYTES = 64 * 1024

/** A message with one field of this many bytes, and the head of four bytes, at a place. */
function fieldAt(at: number, bytes: number): Buffer {
  const message = Buffer.alloc(at + 4 + bytes)
  message.set([0x12, (bytes & 0x7f) | 0x80, ((bytes >> 7) & 0x7f) | 0x80, bytes >> 14], at)
  return message
}

describe('the part of a message for a field', () => {
  it.each([
    [STEP_BYTES - 1, 1_000, 0],
    [STEP_BYTES, 1_000, STEP_BYTES],
    [2 * STEP_BYTES + 5, 1_000, 2 * STEP_BYTES],
  ])('at %i with %i bytes begins at %i', (at, bytes, start) => {
    expect(partStart(fieldAt(at, bytes), at, PART_BYTES)).toBe(start)
  })

  it('begins with a field that would not fit otherwise', () => {
    const at = STEP_BYTES - 10
    const fitting = PART_BYTES - at - 4
    expect(partStart(fieldAt(at, fitting), at, PART_BYTES)).toBe(0)
    expect(partStart(fieldAt(at, fitting + 1), at, PART_BYTES)).toBe(at)
  })

  it('is found for a length that is incomplete or too long', () => {
    expect(partStart(Buffer.from([0x12, 0xff]), 0, PART_BYTES)).toBe(0)
    expect(partStart(Buffer.alloc(STEP_BYTES + 20, 0xff), STEP_BYTES + 1, PART_BYTES)).toBe(STEP_BYTES)
  })
})
