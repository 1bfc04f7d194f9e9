import {
  ClickHouseError,
  type DeadLetter,
  InsertOnce,
  REPLACEMENTS_MAX,
  RowInserter,
  type RowInserterOptions,
} from '@sluice/clickhouse'
import type { BatchRecord, HeldChunk } from '@sluice/queue'
import { compressRows, rowsOfFrame } from '@sluice/rows'
import { createLogger } from '@sluice/runtime'
import { BatchDelivery, type BatchDeliveryDependencies } from '../src/batch-delivery.ts'
import { BatchSplitter, type BatchSplitterDependencies } from '../src/batch-splitter.ts'
import { workerLimits } from '../src/limits.ts'
import { Retrier } from '../src/retrier.ts'
import { Semaphore } from '../src/semaphore.ts'

/**
 * A chunk whose rows have only the ids `ID-0`, `ID-1`, …. The model of ClickHouse rejects the rows whose index is in `poison`.
 */
export function makeChunk(id: string, rows: number, poison: readonly number[] = []): HeldChunk {
  const lines = Array.from(
    { length: rows },
    (_, i) => `\t\t\t${poison.includes(i) ? 'poison-' : ''}${id}-${i}\n`,
  )
  const text = lines.join('')
  return { id, rows, bytes: text.length, frame: compressRows(text) }
}

export function memoryLimitExceeded(): ClickHouseError {
  return new ClickHouseError({ message: 'memory', code: '241', type: 'MEMORY_LIMIT_EXCEEDED' })
}

type Ledger = BatchDeliveryDependencies['ledger'] & BatchSplitterDependencies['ledger']

/** What survives the death of a worker: ClickHouse with its tokens, the ledger in Redis, the jobs in the queue. */
export class World {
  readonly rows: string[] = []
  readonly deadLetters: string[] = []
  readonly jobs = new Map<string, HeldChunk>()
  readonly inserts: { token: string; rows: number }[] = []
  readonly #tokens = new Set<string>()
  readonly #deadLetterTokens = new Set<string>()
  readonly #owners = new Map<string, string>()
  readonly #batches = new Map<
    string,
    { state: BatchRecord['state']; members: string[]; splits: Set<string> }
  >()
  #ids = 0
  #nowMs = 0
  /** Inserts that were given up and will still commit. */
  #late: { readonly dueMs: number; readonly commit: () => boolean }[] = []

  constructor(chunks: readonly HeldChunk[]) {
    for (const chunk of chunks) this.jobs.set(chunk.id, chunk)
  }

  readonly makeId = (): string => `batch-${++this.#ids}`

  get nowMs(): number {
    return this.#nowMs
  }

  /** Lets time pass. */
  readonly sleep = async (ms: number): Promise<void> => {
    this.#nowMs += ms
    const isDue = ({ dueMs }: { readonly dueMs: number }): boolean => dueMs <= this.#nowMs
    const due = this.#late.filter(isDue)
    this.#late = this.#late.filter((insert) => !isDue(insert))
    for (const { commit } of due) commit()
  }

  /** How long after it was given up an insert commits, in ms. Undefined for an insert that is answered. */
  commitsLateAfterMs: () => number | undefined = () => undefined

  /** Whether ClickHouse has no memory now for an insert of more than one row. */
  isShortOfMemory: () => boolean = () => false

  /** Whether ClickHouse crashes now, after it has recorded a token and before it stores the rows. */
  crashesInCommit: () => boolean = () => false

  readonly frameInserter: RowInserterOptions['frameInserter'] = {
    insert: async (frames, token) => {
      if (this.#tokens.has(token)) return
      const lines = frames.flatMap((frame) => rowsOfFrame(frame) ?? []).map((line) => line.trim())
      if (lines.some((line) => line.startsWith('poison-'))) {
        throw new ClickHouseError({
          message: `cannot parse ${lines.join()}`,
          code: '117',
          type: 'INCORRECT_DATA',
        })
      }
      if (lines.length > 1 && this.isShortOfMemory()) {
        throw memoryLimitExceeded()
      }
      const commit = (): boolean => {
        if (this.#tokens.has(token)) return true
        this.#tokens.add(token)
        if (this.crashesInCommit()) return false
        this.inserts.push({ token, rows: lines.length })
        this.rows.push(...lines)
        return true
      }
      const lateAfterMs = this.commitsLateAfterMs()
      if (lateAfterMs === undefined && commit()) return
      if (lateAfterMs !== undefined) this.#late.push({ dueMs: this.#nowMs + lateAfterMs, commit })
      throw new Error('no answer')
    },
  }

  readonly storedRows: RowInserterOptions['storedRows'] = {
    find: async () => new Set(this.rows),
  }

  /** As if more other inserts had come in between than the tables remember. */
  forgetTokens(): void {
    this.#tokens.clear()
    this.#deadLetterTokens.clear()
  }

  readonly ledger: Ledger = {
    claim: async (batchId, ids) => {
      const owners = ids.map((id) => {
        const owner = this.#owners.get(id) ?? (this.jobs.has(id) ? batchId : undefined)
        if (owner !== undefined) this.#owners.set(id, owner)
        return owner
      })
      const members = ids.filter((_id, index) => owners[index] === batchId)
      if (members.length > 0 && !this.#batches.has(batchId)) {
        this.#batches.set(batchId, { state: 'claimed', members, splits: new Set() })
      }
      return owners
    },
    read: async (batchId) => {
      const batch = this.#batches.get(batchId)
      return batch === undefined ? undefined : { ...batch, splits: new Set(batch.splits) }
    },
    recordSplit: async (batchId, range) => {
      const batch = this.#batches.get(batchId)
      if (batch?.state !== 'claimed') return false
      batch.splits.add(range)
      return true
    },
    confirm: async (batchId, _ids, splits) => {
      const batch = this.#batches.get(batchId)
      if (batch?.state === 'claimed' && batch.splits.size > splits) return false
      if (batch !== undefined) batch.state = 'confirmed'
      return true
    },
    release: async (batchId, ids) => {
      this.#batches.delete(batchId)
      for (const id of ids) this.#owners.delete(id)
    },
  }

  readonly hasDeadLetter = async ({ text }: DeadLetter): Promise<boolean> =>
    this.deadLetters.includes(text.trim())

  readonly addDeadLetter = async ({ text }: DeadLetter, token: string): Promise<void> => {
    if (this.#deadLetterTokens.has(token)) return
    this.#deadLetterTokens.add(token)
    if (this.crashesInCommit()) throw new Error('no answer')
    this.deadLetters.push(text.trim())
  }
}

/** What happens to each call that a worker makes to the world, by the number of the call. */
export type Fate = (call: number) => 'works' | 'fails' | 'lost answer' | 'dies before' | 'dies after'

/** A worker in the world, whose calls have fates. After its death none of its calls returns. */
export class ModelWorker {
  readonly delivery: BatchDelivery
  readonly died: Promise<void>
  #isDead = false
  #calls = 0
  #die: () => void = () => undefined
  readonly #world: World
  readonly #fate: Fate

  /** @param areTokensAtomic whether ClickHouse stores a token and its rows in one step, as replicated tables do */
  constructor(world: World, fate: Fate, areTokensAtomic = false) {
    this.#world = world
    this.#fate = fate
    this.died = new Promise((resolve) => {
      this.#die = () => {
        this.#isDead = true
        resolve()
      }
    })
    const { signal } = new AbortController()
    const logger = createLogger('model', 'silent')
    // With long pauses a worker survives until an unanswered insert can no longer commit. With short ones it would always die first.
    const retrier = new Retrier(logger, signal, (ms) => world.sleep(100 * ms))
    // With one permit each, a permit that is not returned stops the worker.
    const insertPermits = new Semaphore(1, signal)
    const splitPermits = new Semaphore(1, signal)
    const recoveryPermits = new Semaphore(1, signal)
    const monotonicMs = (): number => world.nowMs
    const ledger: Ledger = {
      claim: (...args) => this.#call(() => world.ledger.claim(...args)),
      read: (...args) => this.#call(() => world.ledger.read(...args)),
      recordSplit: (...args) => this.#call(() => world.ledger.recordSplit(...args)),
      confirm: (...args) => this.#call(() => world.ledger.confirm(...args)),
      release: (...args) => this.#call(() => world.ledger.release(...args)),
    }
    const insertOnce = {
      areTokensAtomic,
      sleep: world.sleep,
      beforeAttempt: () => Promise.resolve(),
      onTokenWithoutRows: () => undefined,
    }
    const rowInserter = new RowInserter({
      ...insertOnce,
      frameInserter: { insert: (...args) => this.#call(() => world.frameInserter.insert(...args)) },
      storedRows: { find: (...args) => this.#call(() => world.storedRows.find(...args)) },
      lingerMaxMs: workerLimits.insertLingerMaxMs,
      monotonicMs,
    })
    const deadLetters: BatchSplitterDependencies['deadLetters'] = {
      prepare: (letter, token, wasSent) => {
        const target = {
          all: [letter],
          findMissing: async () => ((await this.#call(() => world.hasDeadLetter(letter))) ? [] : [letter]),
          insert: (_missing: readonly DeadLetter[], itsToken: string) =>
            this.#call(() => world.addDeadLetter(letter, itsToken)),
        }
        return new InsertOnce(target, token, { wasSent, replacementsMax: REPLACEMENTS_MAX }, insertOnce)
      },
    }
    const shared = { ledger, rowInserter, insertPermits, retrier, logger }
    this.delivery = new BatchDelivery({
      ...shared,
      recoveryPermits,
      splitter: new BatchSplitter({
        ...shared,
        splitPermits,
        deadLetters,
        insertLingerMaxMs: workerLimits.insertLingerMaxMs,
      }),
      loadChunk: (id) => this.#call(async () => world.jobs.get(id)),
      makeId: world.makeId,
      monotonicMs,
      ownershipTrustedMs: 15_000,
    })
  }

  /** Delivers chunks and completes their jobs. Resolves when all jobs are completed, or when the worker has died. */
  async work(chunks: readonly HeldChunk[]): Promise<void> {
    await Promise.race([this.died, this.#deliver(chunks)])
  }

  async #deliver(chunks: readonly HeldChunk[]): Promise<void> {
    const outcomes = await this.delivery.deliver(chunks)
    for (const { id } of chunks) {
      await outcomes.get(id)
      // If a completion fails, the job is delivered again.
      await this.#call(async () => this.#complete(id)).catch(() => undefined)
    }
  }

  #complete(id: string): void {
    if (this.#world.jobs.delete(id)) this.delivery.completed(id)
  }

  async #call<T>(run: () => Promise<T>): Promise<T> {
    if (this.#isDead) return new Promise(() => undefined)
    const fate = this.#fate(++this.#calls)
    if (fate === 'fails') throw new Error('connection refused')
    if (fate === 'dies before') return this.#stop()
    const [outcome] = await Promise.allSettled([run()])
    if (fate === 'dies after') return this.#stop()
    if (fate === 'lost answer') throw new Error('connection reset')
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  }

  #stop(): Promise<never> {
    this.#die()
    return new Promise(() => undefined)
  }
}
