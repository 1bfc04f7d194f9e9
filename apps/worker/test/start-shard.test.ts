import type { InsertResult } from '@sluice/clickhouse'
import type { HeldChunk } from '@sluice/queue'
import { createLogger } from '@sluice/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { HeldBudget } from '../src/held-budget.ts'
import { InsertHealth } from '../src/insert-health.ts'
import { workerLimits } from '../src/limits.ts'
import { Retrier } from '../src/retrier.ts'
import { Semaphore } from '../src/semaphore.ts'
import { type RunningShard, type ShardDependencies, startShard } from '../src/start-shard.ts'
import { WorkerCounts } from '../src/worker-counts.ts'
import { insertErrors, makeChunk } from './support/chunks.ts'
import { limits } from './support/shard-fixture.ts'
import { TestClock } from './support/test-clock.ts'

const config = { BATCH_ROWS_MAX: 4, BATCH_WAIT_MS: 50, LOCK_DURATION_MS: 10_000 }

let clock: TestClock
let calls: string[]
let waiting: HeldChunk[]
/** The batches of chunks that are claimed already. */
let owners: Map<string, string>
/** Makes one attempt to insert a batch. */
let insert: (token: string) => Promise<InsertResult>
let shard: RunningShard

beforeEach(() => {
  clock = new TestClock()
  calls = []
  waiting = []
  owners = new Map()
  insert = async () => 'stored'
})

/** Starts the shard, and lets time pass. */
async function run(ms: number): Promise<void> {
  const logger = createLogger('test', 'silent')
  const { signal } = new AbortController()
  const dependencies: ShardDependencies = {
    config,
    rowInserter: {
      prepare: (_frames, token) => {
        const attempt = (): Promise<InsertResult> => {
          calls.push(`insert ${token}`)
          return insert(token)
        }
        return { run: attempt } as ReturnType<ShardDependencies['rowInserter']['prepare']>
      },
      prepareSingle: () => unused(),
      consumeToken: () => unused(),
      findStored: () => unused(),
    },
    deadLetters: { prepare: () => unused() },
    health: new InsertHealth(clock, workerLimits),
    insertNothing: () => Promise.resolve(),
    insertSlots: new Semaphore(2, signal),
    repairPermits: new Semaphore(2, signal),
    chunkBudget: new HeldBudget(workerLimits.chunksMax),
    byteBudget: new HeldBudget(workerLimits.heldBytesMax),
    heldInAllShards: () => 0,
    signal,
    counts: new WorkerCounts(undefined, () => 0),
    retrier: new Retrier({ logger, signal, clock, random: () => 0 }),
    makeId: () => `new-${calls.length}`,
    workerId: 'me',
    clock,
    fetchLimits: { ...limits, chunksPerRoundMax: 64 },
    logger,
  }
  shard = startShard(queue, dependencies)
  await clock.pass(ms)
}

function unused(): never {
  throw new Error('not used')
}

const queue: Parameters<typeof startShard>[0] = {
  ledger: {
    claim: async (batchId, ids) => {
      calls.push(`claim ${ids.join(' ')}`)
      return ids.map((id) => owners.get(id) ?? batchId)
    },
    read: async (batchId) => {
      calls.push(`read ${batchId}`)
      const members = [...owners.keys()].filter((id) => owners.get(id) === batchId)
      return members.length === 0 ? undefined : { state: 'claimed', members, splits: new Set(), repairs: 0 }
    },
    recordSplit: () => unused(),
    beginRepair: () => Promise.resolve({ number: 1, splits: new Set() }),
    renewLease: () => Promise.resolve(),
    endLease: () => Promise.resolve(),
  },
  consumer: {
    fetch: async (count) => ({ turn: 'mine', chunks: waiting.splice(0, count), hasMore: false }),
    load: async (ids) => ids.map((id) => makeChunk(id)),
    finish: async ({ id }) => {
      calls.push(`finish ${id}`)
      return true
    },
    requeue: () => Promise.resolve(),
    fail: () => Promise.resolve(),
    forget: () => undefined,
    heldChunks: 5,
    close: async () => void calls.push('close'),
  },
}

const only = (word: string): string[] => calls.filter((call) => call.startsWith(word))

describe('the delivery of a shard', () => {
  it('collects chunks as the settings say', async () => {
    waiting = ['a', 'b', 'c', 'd', 'e'].map((id) => makeChunk(id))
    await run(config.BATCH_WAIT_MS - 1)
    expect(only('claim')).toEqual(['claim a b c d'])
    await clock.pass(1)
    expect(only('claim')).toEqual(['claim a b c d', 'claim e'])
  })

  it('trusts that a batch belongs to it for half of the duration of a lock', async () => {
    waiting = [makeChunk('a')]
    insert = () => Promise.reject(insertErrors.transient)
    await run(config.BATCH_WAIT_MS + config.LOCK_DURATION_MS / 2)
    expect(only('read')).toEqual([])
    await clock.pass(workerLimits.retry.maxMs)
    expect(only('read')).toHaveLength(1)
  })

  it('repairs one batch at a time', async () => {
    owners = new Map([
      ['a', 'B'],
      ['b', 'C'],
    ])
    waiting = [makeChunk('a'), makeChunk('b')]
    const inserted = Promise.withResolvers<InsertResult>()
    insert = () => inserted.promise
    await run(1_000)
    expect(only('insert')).toEqual(['insert B'])
    inserted.resolve('stored')
    await clock.pass(0)
    expect(only('finish')).toEqual(['finish B', 'finish C'])
  })

  it('closes the consumer after everything is delivered', async () => {
    waiting = [makeChunk('a')]
    await run(0)
    await clock.settle(shard.stop())
    expect(calls.map((call) => call.split(' ')[0])).toEqual(['claim', 'insert', 'finish', 'close'])
  })

  it('reports the chunks in hand of its consumer', async () => {
    await run(0)
    expect(shard.heldChunks).toBe(5)
  })
})
