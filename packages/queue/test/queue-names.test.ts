import { describe, expect, it } from 'vitest'
import { queueNames, type QueueNames, shardNames } from '../src/queue-names.ts'

/** The part of a key that determines its slot in a Redis Cluster. */
const tagOf = (key: string): string | undefined => /\{([^}]+)\}/.exec(key)?.[1]
const keysOf = (names: QueueNames): string[] => [
  names.queuePrefix,
  names.waitKey,
  names.activeKey,
  names.delayedKey,
  names.failedKey,
  names.jobKey('id'),
  names.chunkKey('id'),
  names.batchKey('id'),
  names.leaseKey('id'),
  names.turnKey,
  names.idempotencyKey('hash'),
]

describe('the names of shards', () => {
  it('with one shard, are those of an installation without shards', () => {
    const [only, ...others] = shardNames('sluice', 1)
    expect(others).toEqual([])
    expect(JSON.stringify(only)).toBe(JSON.stringify(queueNames('sluice')))
    expect(keysOf(queueNames('sluice'))).toEqual([
      '{sluice}',
      '{sluice}:logs:wait',
      '{sluice}:logs:active',
      '{sluice}:logs:delayed',
      '{sluice}:logs:failed',
      '{sluice}:logs:id',
      '{sluice}:chunk:id',
      '{sluice}:batch:id',
      '{sluice}:lease:id',
      '{sluice}:turn',
      '{sluice}:idempotency:hash',
    ])
  })

  it('do not change when shards are added or removed', () => {
    expect(shardNames('a', 5).slice(0, 3).map(keysOf)).toEqual(shardNames('a', 3).map(keysOf))
  })

  it('are in one slot per shard, and in a different one for each shard', () => {
    const tags = shardNames('a', 4).map((names) => new Set(keysOf(names).map(tagOf)))
    for (const tag of tags) expect(tag.size).toBe(1)
    expect(tags.reduce((all, tag) => all.union(tag)).size).toBe(4)
  })
})
