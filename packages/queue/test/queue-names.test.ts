import { describe, expect, it } from 'vitest'
import { queueNames, type QueueNames, shardNames } from '../src/queue-names.ts'

/** The keys of a shard. */
function keysOf({
  queue: _queue,
  shardCountKey: _shardCountKey,
  firstCompleteKey: _firstCompleteKey,
  ...names
}: QueueNames): string[] {
  return Object.values(names).flatMap((name) =>
    typeof name === 'function' ? name('id') : typeof name === 'string' ? name : [],
  )
}

/** The part of a key that determines its slot in a Redis Cluster. */
const tagOf = (key: string): string | undefined => /\{([^}]+)\}/.exec(key)?.[1]

describe('the names of shards', () => {
  // Processes of different versions share them.
  it('never change', () => {
    expect(keysOf(queueNames('sluice'))).toEqual([
      '{sluice}',
      '{sluice}:logs:id',
      '{sluice}:logs:wait',
      '{sluice}:logs:active',
      '{sluice}:logs:delayed',
      '{sluice}:logs:failed',
      '{sluice}:chunk:id',
      '{sluice}:batch:id',
      '{sluice}:lease:id',
      '{sluice}:turn',
      '{sluice}:idempotency:id',
      '{sluice}:idempotency-quota:id',
      '{sluice}:absent',
      '{sluice}:complete',
      '{sluice}:complete:compared',
      '{sluice}:receipts',
      '{sluice}:admitted',
      '{sluice}:row-totals',
    ])
  })

  it('are in one slot per shard, and in a different one for each shard', () => {
    const tags = shardNames('a', 4).map((names) => new Set(keysOf(names).map(tagOf)))
    expect(tags).toEqual([new Set(['a']), new Set(['a:1']), new Set(['a:2']), new Set(['a:3'])])
  })
})
