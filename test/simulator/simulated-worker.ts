import { ClockSkewError, InsertOnce, REPLACEMENTS_MAX, RowInserter } from '@sluice/clickhouse'
import type { Random } from '@sluice/harness'
import { rowsOfFrame } from '@sluice/rows'
import { createLogger, Semaphore } from '@sluice/runtime'
import { heldBudget } from '../../apps/worker/src/collector.ts'
import { InsertHealth } from '../../apps/worker/src/insert-health.ts'
import { workerLimits } from '../../apps/worker/src/limits.ts'
import { RejectedProjects } from '../../apps/worker/src/rejected-projects.ts'
import { Retrier } from '../../apps/worker/src/retrier.ts'
import { type ShardDependencies, type ShardQueue, startShard } from '../../apps/worker/src/shards.ts'
import { observeQueries, WorkerEvents } from '../../apps/worker/src/worker-events.ts'
import type { SimulatedClickHouse } from './simulated-clickhouse.ts'
import type { Link, SimulatedProcess } from './simulated-process.ts'
import { LOCK_MS, type SimulatedRedis } from './simulated-redis.ts'

/** Longer intervals than in production. Most of the time nothing is waiting, and each round is an event. */
const fetchLimits = {
  intervalMs: 100,
  idleIntervalMs: 2_000,
  standbyIntervalMs: 4_000,
  failedIntervalMs: 3_000,
  chunksPerRoundMax: 3,
} as const
const STALLED_CHECK_MS = 10_000
const logger = createLogger('simulator', 'silent')

export interface SimulatedWorkerOptions {
  readonly process: SimulatedProcess
  readonly redis: SimulatedRedis
  readonly clickhouse: SimulatedClickHouse
  readonly random: Random
  readonly areTokensAtomic: boolean
  readonly makeId: () => string
  readonly toRedis: Link
  readonly toClickHouse: Link
}

/** Runs the worker's own code in a simulated process. @returns how many chunks it holds */
export function startSimulatedWorker(options: SimulatedWorkerOptions): () => number {
  const { process, clickhouse, random, areTokensAtomic, makeId } = options
  const toClickHouse = <T>(name: string, run: () => T): Promise<T> =>
    process.request(name, run, options.toClickHouse)
  const { signal } = new AbortController()
  const events = new WorkerEvents()
  const health = new InsertHealth(process, events)
  const queries = observeQueries(events, process, {
    beforeAttempt: async () => {
      if (clickhouse.faults.isClockWrong) throw new ClockSkewError('the clock of ClickHouse is wrong')
    },
    frameInserter: {
      isRunning: async () => false,
      insert: (frames, token) => {
        const isSingle =
          frames.length === 1 && frames[0] !== undefined && rowsOfFrame(frames[0])?.length === 1
        // The only assumption about time: see docs/exactly-once.md.
        const assumed = isSingle ? { delayMaxMs: workerLimits.insertLingerMaxMs } : {}
        const link = { ...options.toClickHouse, ...assumed }
        return process.request(`insert ${token}`, () => clickhouse.insert(frames, token), link)
      },
    },
    storedRows: { find: (rows) => toClickHouse('look up', () => clickhouse.find(rows)) },
  })
  const insertOnce = {
    areTokensAtomic,
    sleep: (ms: number) => process.sleep(ms),
    beforeAttempt: queries.beforeAttempt,
  }
  const queue = simulatedQueue(options)
  const dependencies: ShardDependencies = {
    config: { BATCH_ROWS_MAX: 6, BATCH_WAIT_MS: 500, LOCK_DURATION_MS: LOCK_MS },
    rowInserter: new RowInserter({ ...insertOnce, ...queries }),
    rowCheck: { findSuspects: (rows) => toClickHouse('check', () => clickhouse.findSuspects(rows, random)) },
    deadLetters: {
      prepare: (letters, token, wasSent) =>
        new InsertOnce(
          {
            all: letters,
            token,
            wasSent,
            replacementsMax: REPLACEMENTS_MAX,
            findMissing: () =>
              toClickHouse('look up dead letters', () =>
                letters.filter((letter) => !clickhouse.hasDeadLetter(letter)),
              ),
            insert: (missing, itsToken) =>
              toClickHouse(`insert dead letters ${itsToken}`, () =>
                clickhouse.insertDeadLetters(missing, itsToken),
              ),
          },
          insertOnce,
        ),
    },
    health,
    insertNothing: queries.insertNothing,
    insertSlots: new Semaphore(workerLimits.insertsInFlightMax, signal),
    repairPermits: new Semaphore(workerLimits.repairsInFlightMax, signal),
    rejectedProjects: new RejectedProjects(process),
    chunkBudget: heldBudget(workerLimits.chunksMax),
    byteBudget: heldBudget(workerLimits.heldBytesMax),
    heldInAllShards: () => queue.consumer.heldChunks,
    signal,
    events,
    retrier: new Retrier({ logger, signal, clock: process, random, events }),
    makeId,
    workerId: process.name,
    clock: process,
    fetchLimits,
    logger,
  }
  startShard(queue, 0, dependencies)
  return () => queue.consumer.heldChunks
}

function simulatedQueue({ process, redis, toRedis: link }: SimulatedWorkerOptions): ShardQueue {
  const held = new Map<string, string>()
  const toRedis = <T>(name: string, run: () => T): Promise<T> => process.request(name, run, link)
  const tokensOf = (ids: readonly string[]): Map<string, string> =>
    new Map(ids.flatMap((id) => (held.has(id) ? [[id, held.get(id) ?? '']] : [])))
  const release = (tokens: ReadonlyMap<string, string>): void => {
    for (const [id, token] of tokens) if (held.get(id) === token) held.delete(id)
  }
  const repeat = async (intervalMs: number, run: () => Promise<unknown>): Promise<void> => {
    while (!process.isDead) {
      await process.sleep(intervalMs)
      await run().catch(() => undefined)
    }
  }
  void repeat(LOCK_MS / 4, async () => {
    if (held.size > 0) await toRedis('renew', () => redis.renew(new Map(held)))
  })
  void repeat(STALLED_CHECK_MS, () => toRedis('requeue stalled', () => redis.requeueStalled()))
  return {
    ledger: {
      claim: (batchId, ids) => toRedis(`claim ${batchId}: ${ids.join(' ')}`, () => redis.claim(batchId, ids)),
      read: (batchId) => toRedis(`read ${batchId}`, () => redis.read(batchId)),
      recordSplit: (batchId, range, repair) =>
        toRedis(`split ${batchId}/${range}`, () => redis.recordSplit(batchId, range, repair)),
      beginRepair: (batchId, workerId) =>
        toRedis(`begin repair ${batchId}`, () => redis.beginRepair(batchId, workerId)),
      renewLease: (batchId, workerId) =>
        toRedis(`renew lease ${batchId}`, () => redis.renewLease(batchId, workerId)),
      endLease: (batchId, workerId) =>
        toRedis(`end lease ${batchId}`, () => redis.endLease(batchId, workerId)),
    },
    consumer: {
      fetch: async (count, { isBusy }) => {
        const result = await toRedis('fetch', () => redis.fetch(process.name, count, isBusy))
        if (result === 'taken') return undefined
        const chunks = result.chunks.filter(({ id }) => !held.has(id))
        for (const [id, token] of result.tokens) held.set(id, token)
        return { chunks, hasMore: result.hasMore }
      },
      load: (ids) => toRedis('load', () => redis.load(ids)),
      // A job may be fetched again, with a new token, while one of these steps is in flight.
      finish: async (batch, repair) => {
        let isFinished = true
        do {
          const tokens = tokensOf(batch.members)
          isFinished = await toRedis(`finish ${batch.id}`, () => redis.finish(batch, repair, tokens))
          if (isFinished) release(tokens)
        } while (isFinished && tokensOf(batch.members).size > 0)
        return isFinished
      },
      requeue: async (ids, end) => {
        for (let tokens = tokensOf(ids); tokens.size > 0; tokens = tokensOf(ids)) {
          const sent = tokens
          await toRedis(`requeue ${ids.join(' ')}`, () => redis.requeue(sent, end))
          release(sent)
        }
      },
      fail: async (id) => {
        for (let token = held.get(id); token !== undefined; token = held.get(id)) {
          const sent = token
          await toRedis(`fail ${id}`, () => redis.fail(id, sent))
          release(new Map([[id, sent]]))
        }
      },
      forget: (ids) => ids.forEach((id) => held.delete(id)),
      get heldChunks() {
        return held.size
      },
      close: () => toRedis('yield turn', () => redis.yieldTurn(process.name)),
    },
  }
}
