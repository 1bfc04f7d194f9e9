import {
  type DeadLetter,
  type FrameInserter,
  InsertOnce,
  REPLACEMENTS_MAX,
  RowInserter,
  type Suspects,
} from '@sluice/clickhouse'
import { rowKey, rowsOfFrame } from '@sluice/rows'
import { nameOfId } from '@sluice/rows/testing'
import { createLogger } from '@sluice/runtime'
import { type MockInstance, vi } from 'vitest'
import { SimulatedClickHouse } from '../../../../test/simulator/simulated-clickhouse.ts'
import { BatchSplitter, type BatchSplitterDependencies, type PartsResult } from '../../src/batch-splitter.ts'
import type { BatchInRepair, Recovery } from '../../src/batch.ts'
import { InsertHealth } from '../../src/insert-health.ts'
import { RejectedProjects } from '../../src/rejected-projects.ts'
import { Retrier } from '../../src/retrier.ts'
import { observeQueries, WorkerEvents } from '../../src/worker-events.ts'
import { makeChunk, makeRow } from './chunks.ts'
import { TestClock } from './test-clock.ts'

export interface SplitterFixtureOptions {
  /** Whether ClickHouse stores a token and its rows in one step, so that nothing is looked up after an insert. */
  readonly areTokensAtomic: boolean
}

/** A splitter with the real inserter, and simulated tables. Everything that is requested is in `calls`, in order. */
export class SplitterFixture {
  readonly clock = new TestClock()
  readonly events = new WorkerEvents()
  readonly stopping = new AbortController()
  readonly health: InsertHealth
  readonly table: SimulatedClickHouse
  readonly calls: string[] = []
  /** The ranges that are persisted as split. */
  readonly persisted = new Set<string>()
  /** The numbers of the repairs that persisted splits. */
  readonly repairs = new Set<number>()
  /** Called before an insert reaches ClickHouse. If it throws, the insert does not. */
  beforeInsert: (token: string, ids: readonly string[], frames: readonly Buffer[]) => void = () => undefined
  /** Called before a lookup reaches ClickHouse. */
  beforeLookup: () => void = () => undefined
  /** The reply of Redis when a split is to be persisted. */
  recordSplit: (range: string) => Promise<boolean> = async (range) => {
    this.persisted.add(range)
    return true
  }
  /** What a query finds out about rows. It knows nothing by default. */
  findSuspects: (ids: readonly string[]) => Suspects = () => new Map()
  /** Whether a lookup finds the rows and dead letters that are stored. */
  isVisible = true
  readonly deadLetters: DeadLetter[] = []
  /** Called before a dead letter reaches ClickHouse. */
  beforeDeadLetter: () => void = () => undefined
  readonly errors: MockInstance
  readonly retrier: Retrier
  readonly #dependencies: BatchSplitterDependencies
  /** An insert of this worker. */
  readonly insert: FrameInserter['insert']

  constructor({ areTokensAtomic }: SplitterFixtureOptions = { areTokensAtomic: true }) {
    const { clock, stopping, calls } = this
    const logger = createLogger('test', 'silent')
    this.errors = vi.spyOn(logger, 'error')
    const events = this.events
    this.health = new InsertHealth(clock, events)
    const time = {
      get nowMs() {
        return clock.nowMs()
      },
    }
    this.table = new SimulatedClickHouse(time, {
      isShortOfMemory: false,
      isTableBroken: false,
      isClockWrong: false,
      failsForMemory: () => false,
      acceptsAll: false,
      crashesInCommit: () => false,
      keepsPartOfRejected: () => false,
      storesRejected: false,
    })
    const insertOnce = {
      areTokensAtomic,
      sleep: (ms: number) => clock.sleep(ms),
      beforeAttempt: () => Promise.resolve(),
    }
    this.retrier = new Retrier({ logger, signal: stopping.signal, clock, random: () => 0, events })
    const { frameInserter } = observeQueries(events, clock, {
      beforeAttempt: () => Promise.resolve(),
      storedRows: { find: () => Promise.reject(new Error('not used')) },
      frameInserter: {
        isRunning: async () => false,
        insert: async (frames, token) => {
          const ids = idsOf(frames)
          calls.push(`insert ${token}: ${ids.join(' ')}`)
          this.beforeInsert(token, ids, frames)
          this.table.insert(frames, token)
        },
      },
    })
    this.insert = frameInserter.insert
    this.#dependencies = {
      events,
      ledger: {
        recordSplit: (_batchId, range, repair) => {
          calls.push(`persist ${range}`)
          this.repairs.add(repair)
          return this.recordSplit(range)
        },
      },
      rowInserter: new RowInserter({
        ...insertOnce,
        frameInserter,
        storedRows: {
          find: async (rows) => {
            const keys = [...rows]
            calls.push(`look up ${keys.map(({ id }) => nameOfId(id)).join(' ')}`)
            this.beforeLookup()
            return this.isVisible ? this.table.find(keys) : new Set()
          },
        },
      }),
      deadLetters: {
        prepare: (letters, token, wasSent) => {
          const target = {
            all: letters,
            token,
            wasSent,
            replacementsMax: REPLACEMENTS_MAX,
            findMissing: async () =>
              letters.filter(
                ({ text }) => !this.isVisible || this.deadLetters.every((letter) => letter.text !== text),
              ),
            insert: async (_missing: readonly DeadLetter[], itsToken: string) => {
              calls.push(`dead-letter ${itsToken}`)
              this.beforeDeadLetter()
              this.deadLetters.push(...letters.filter((letter) => !this.deadLetters.includes(letter)))
            },
          }
          return new InsertOnce(target, insertOnce)
        },
      },
      rowCheck: {
        findSuspects: async (rows) => {
          const ids = new Map(rows.map((row) => [nameOf(row), rowKey(row).id]))
          calls.push(`check ${[...ids.keys()].join(' ')}`)
          const suspects = this.findSuspects([...ids.keys()])
          return new Map(Array.from(suspects, ([name, error]) => [ids.get(name) ?? name, error]))
        },
      },
      rejectedProjects: new RejectedProjects(clock),
      retrier: this.retrier,
      health: this.health,
      clock,
      logger,
    }
  }

  /** The end of an insert of another batch. */
  otherInsert(error?: Error): void {
    const insert = { kind: 'insert', startedMs: this.clock.nowMs() } as const
    this.events.emit('query ended', insert, error && { error })
  }

  split(batch: BatchInRepair, earlier: Partial<Recovery> = {}): Promise<PartsResult> {
    const recovery = { batchId: 'B', chunkIds: [], lastRepair: 7, unsettledUntilMs: 0, ...earlier }
    return this.clock.settle(new BatchSplitter(this.#dependencies, batch, recovery).run())
  }

  /** The calls that begin with one of these words. */
  only(...words: readonly string[]): string[] {
    return this.calls.filter((call) => words.some((word) => call.startsWith(word)))
  }
}

/** The batch B with one chunk of rows with these ids. */
export function batchOf(ids: readonly string[], splits: readonly string[] = []): BatchInRepair {
  const chunks = [
    makeChunk(
      'chunk',
      ids.map((id) => makeRow(id)),
    ),
  ]
  return { id: 'B', chunks, splits: new Set(splits), repair: 7 }
}

function idsOf(frames: readonly Buffer[]): string[] {
  return frames.flatMap((frame) => rowsOfFrame(frame) ?? []).map(nameOf)
}

function nameOf(row: string): string {
  return nameOfId(rowKey(row).id)
}
