import { describe, expect, it } from 'vitest'
import { hashIdempotencyKey, shardOf } from '../../src/idempotency/idempotency-record.ts'

const hashes = Array.from({ length: 3_000 }, (_, i) => hashIdempotencyKey('project', `key-${i}`))

describe('the shard of a key', () => {
  it('is the same in every version, so that another version finds the existing records', () => {
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'].map((key) => hashIdempotencyKey('project', key))
    expect(keys.map((hash) => shardOf(hash, 4))).toEqual([0, 0, 2, 0, 3, 2])
    expect(keys.map((hash) => shardOf(hash, 1))).toEqual([0, 0, 0, 0, 0, 0])
  })

  it('is each shard about equally often', () => {
    for (const shard of [0, 1, 2]) {
      const share = hashes.filter((hash) => shardOf(hash, 3) === shard).length
      expect(share).toBeGreaterThan(900)
      expect(share).toBeLessThan(1_100)
    }
  })
})
