import { type HeldChunk, shardNames } from '@sluice/queue'
import { createLogger, Semaphore } from '@sluice/runtime'
import { heldBudget } from '../../src/collector.ts'
import { InsertHealth } from '../../src/insert-health.ts'
import { workerLimits } from '../../src/limits.ts'
import { RejectedProjects } from '../../src/rejected-projects.ts'
import { Retrier } from '../../src/retrier.ts'
import { fetchLimits, type Shard } from '../../src/shard.ts'
import { type ShardDependencies, type ShardQueue, startShard } from '../../src/shards.ts'
import { observeQueries, WorkerEvents } from '../../src/worker-events.ts'
import { makeChunk } from './chunks.ts'
import { TestClock } from './test-clock.ts'

export const config = { BATCH_ROWS_MAX: 4, BATCH_WAIT_MS: 50, LOCK_DURATION_MS: 10_000 }

function unused(): never {
  throw new Error('not used')
}

const answers = (): Promise<unknown> => Promise.resolve()

/** A worker of one or more shards, whose Redis and ClickHouse are under the control of the test. */
export class WorkerFixture {
  readonly clock = new TestClock()
  readonly calls: string[] = []
  readonly shards: Shard[] = []
  readonly insertSlots: Semaphore
  /** What each request to Redis does. */
  readonly redis = {
    claim: answers,
    read: answers,
    finish: answers,
    fetch: answers as (shard: number) => Promise<unknown>,
  }
  /** Makes one attempt to insert a batch. */
  insert: (token: string) => Promise<unknown> = answers
  /** Batches of chunks that are claimed already. */
  readonly owners = new Map<string, string>()
  /** Whether another worker has the lease of every batch. */
  isLeased = false
  /** Whether it can read what it fetches. Otherwise chunks stay in the queue. */
  canRead = true
  /** Whether chunks stay held after their batch is finished. */
  keepsChunks = false
  stored = 0
  readonly #events = new WorkerEvents()
  readonly #waiting: HeldChunk[][] = []
  readonly #signal = new AbortController().signal

  constructor(shards = 1) {
    this.insertSlots = new Semaphore(2, this.#signal)
    const dependencies = this.#dependencies()
    for (const { shard } of shardNames('test', shards)) {
      this.#waiting.push([])
      this.shards.push(startShard(this.#queue(shard), shard, dependencies))
    }
  }

  get heldChunks(): number {
    return this.shards.reduce((sum, shard) => sum + shard.heldChunks, 0)
  }

  add(id: string, shard = 0): void {
    this.#waiting[shard]?.push(makeChunk(id))
  }

  /** The calls that begin with this word. */
  only(word: string): string[] {
    return this.calls.filter((call) => call.startsWith(word))
  }

  #queue(shard: number): ShardQueue {
    const { redis, calls, owners } = this
    const waiting = this.#waiting[shard] ?? []
    const held = new Set<string>()
    const forget = (ids: readonly string[]): void => {
      for (const id of ids) held.delete(id)
    }
    return {
      ledger: {
        claim: async (batchId, ids) => {
          calls.push(`claim ${ids.join(' ')}`)
          await redis.claim()
          return ids.map((id) => owners.get(id) ?? batchId)
        },
        read: async (batchId) => {
          calls.push(`read ${batchId}`)
          await redis.read()
          const members = [...owners.keys()].filter((id) => owners.get(id) === batchId)
          return { state: 'claimed', members, splits: new Set(), repairs: 0 }
        },
        recordSplit: unused,
        beginRepair: async () => (this.isLeased ? undefined : { number: 1, splits: new Set() }),
        renewLease: async () => undefined,
        endLease: async () => undefined,
      },
      consumer: {
        fetch: async (count) => {
          await redis.fetch(shard)
          if (!this.canRead) await this.clock.sleep(100)
          const chunks = this.canRead ? waiting.splice(0, count) : []
          for (const { id } of chunks) held.add(id)
          return { chunks, hasMore: waiting.length > 0 }
        },
        load: async (ids) => ids.map((id) => makeChunk(id)),
        finish: async ({ id, members }) => {
          calls.push(`finish ${id}`)
          await redis.finish()
          if (!this.keepsChunks) forget(members)
          this.stored += members.length
          return true
        },
        requeue: async (ids) => {
          waiting.push(...ids.map((id) => makeChunk(id)))
          forget(ids)
        },
        fail: async (id) => forget([id]),
        forget,
        get heldChunks() {
          return held.size
        },
        close: async () => void calls.push('close'),
      },
    }
  }

  #dependencies(): ShardDependencies {
    const { clock, calls } = this
    const events = this.#events
    const signal = this.#signal
    const logger = createLogger('test', 'silent')
    const { frameInserter } = observeQueries(events, clock, {
      beforeAttempt: unused,
      storedRows: { find: unused },
      frameInserter: {
        isRunning: unused,
        insert: async (_frames, token) => {
          calls.push(`insert ${token}`)
          await this.insert(token)
        },
      },
    })
    const prepare: ShardDependencies['rowInserter']['prepare'] = (frames, token) => {
      const run = () => frameInserter.insert(frames, token)
      return { run } as ReturnType<ShardDependencies['rowInserter']['prepare']>
    }
    let batches = 0
    return {
      config,
      rowInserter: {
        prepare,
        send: unused,
        findStored: unused,
      },
      rowCheck: { findSuspects: unused },
      deadLetters: { prepare: unused },
      health: new InsertHealth(clock, events),
      insertNothing: () => frameInserter.insert([], 'nothing'),
      insertSlots: this.insertSlots,
      repairPermits: new Semaphore(2, signal),
      rejectedProjects: new RejectedProjects(clock),
      chunkBudget: heldBudget(workerLimits.chunksMax),
      byteBudget: heldBudget(workerLimits.heldBytesMax),
      heldInAllShards: () => this.heldChunks,
      signal,
      retrier: new Retrier({ logger, signal, clock, random: () => 0, events }),
      events,
      makeId: () => `new-${(batches += 1)}`,
      workerId: 'me',
      clock,
      fetchLimits,
      logger,
    }
  }
}
