import {
  type BatchRecord,
  type BatchRepair,
  type NewChunk,
  type HeldChunk,
  type RowTotals,
  type StoredBatch,
} from '@sluice/queue'
import type { SimulatedTime } from './simulated-time.ts'

interface Job {
  readonly chunk: NewChunk
  lock: { readonly token: string; untilMs: number } | undefined
}

const heldChunk = (id: string, { chunk: { rows, bytes, frame, trace } }: Job): HeldChunk => ({
  id,
  rows,
  bytes,
  frame,
  trace,
})

interface Expiring<T> {
  readonly value: T
  readonly untilMs: number
}

/** What Redis has on its disk. Its values are replaced and never changed, so that a copy needs the maps only. */
interface Disk {
  readonly jobs: Map<string, Job>
  /** Ids of waiting jobs, oldest first. */
  wait: readonly string[]
  readonly owners: Map<string, Expiring<string>>
  readonly batches: Map<string, Expiring<BatchRecord>>
  readonly leases: Map<string, Expiring<string>>
  readonly failed: Set<string>
  /** The earliest receipt of each chunk in the queue, and of those that are admitted. */
  readonly receipts: Map<string, number>
  /** The fences of admitted chunks. */
  readonly admitted: Map<string, number>
  completeMs: number
  turn: Expiring<Turn> | undefined
  totals: RowTotals
}

interface Turn {
  readonly workerId: string
  readonly isBusy: boolean
}

export interface FetchedChunks {
  readonly chunks: readonly HeldChunk[]
  readonly hasMore: boolean
  /** Of the locks, by the ids of the chunks. */
  readonly tokens: ReadonlyMap<string, string>
}

/** Of a lock. Shorter ones are for tests of the model. */
export const LOCK_MS = 30_000
const TURN_TTL_MS = 5_000
const LEASE_TTL_MS = 15_000
const CONFIRMED_TTL_MS = 30 * 86_400_000
export const RELEASED_TTL_MS = 300_000

/**
 * The queue and the records of one shard, as `packages/queue` changes them in Redis: each method is one Lua script of it. Each response is compared
 * with the one of Redis in simulated-redis.integration.test.ts.
 */
export class SimulatedRedis {
  readonly #time: Pick<SimulatedTime, 'nowMs'>
  #disk: Disk = {
    jobs: new Map(),
    wait: [],
    owners: new Map(),
    batches: new Map(),
    leases: new Map(),
    failed: new Set(),
    receipts: new Map(),
    admitted: new Map(),
    completeMs: -1,
    turn: undefined,
    totals: { added: 0, inserted: 0, deadLettered: 0, removed: 0 },
  }
  #replica: Disk | undefined
  /** Its clock minus the true time. */
  #clockOffsetMs = 0
  #fetches = 0

  constructor(time: Pick<SimulatedTime, 'nowMs'>) {
    this.#time = time
  }

  get jobs(): number {
    return this.#disk.jobs.size - this.#disk.failed.size
  }

  get totals(): RowTotals {
    return this.#disk.totals
  }

  get failed(): number {
    return this.#disk.failed.size
  }

  /** The jobs that are left, for a report. */
  describe(): string {
    const { jobs, wait, owners } = this.#disk
    const describeJob = ([id, { lock }]: readonly [string, Job]): string =>
      `${id} of ${owners.get(id)?.value ?? 'no batch'} ${lock?.token ?? (wait.includes(id) ? 'waits' : '')}`
    return [...jobs].slice(0, 5).map(describeJob).join(', ')
  }

  /** The primary is separated from its replica. It still handles requests, and acknowledges none of them. */
  isolate(): void {
    this.#replica ??= copyOf(this.#disk)
  }

  get isIsolated(): boolean {
    return this.#replica !== undefined
  }

  /** The replica becomes the primary. What was not acknowledged is lost. */
  failOver(): void {
    if (this.#replica !== undefined) this.#disk = this.#replica
    this.#replica = undefined
  }

  /** Its clock is set: locks, leases and records expire earlier or later by this much. */
  stepClock(ms: number): void {
    this.#clockOffsetMs += ms
  }

  /** Its clock. */
  get clockMs(): number {
    return this.#nowMs
  }

  /** @returns the time of receipt that the chunk must have to be added; undefined if it was added */
  add(chunkId: string, chunk: NewChunk, notAfterMs: number): number | undefined {
    if (this.#time.nowMs > notAfterMs) throw new Error('the deadline has passed')
    if (this.#disk.jobs.has(chunkId) || this.#valid(this.#disk.owners.get(chunkId)) !== undefined)
      return undefined
    const { admitted, completeMs, receipts, totals } = this.#disk
    if (chunk.receivedMs <= completeMs) {
      if (!admitted.has(chunkId)) {
        admitted.set(chunkId, notAfterMs)
        receipts.set(chunkId, completeMs + 1)
      }
      const admittedMs = receipts.get(chunkId) ?? 0
      if (chunk.receivedMs < admittedMs) return admittedMs
    }
    receipts.set(chunkId, chunk.receivedMs)
    admitted.delete(chunkId)
    this.#disk.totals = { ...totals, added: totals.added + chunk.rows }
    this.#disk.jobs.set(chunkId, { chunk, lock: undefined })
    this.#disk.wait = [...this.#disk.wait, chunkId]
    return undefined
  }

  /** From now on, no chunk is added that was received up to this time. @returns the time up to which none is in the queue or comes into it */
  complete(closedMs: number): number {
    const { admitted, receipts } = this.#disk
    for (const [id, fenceMs] of admitted) {
      if (fenceMs >= this.#time.nowMs) continue
      admitted.delete(id)
      receipts.delete(id)
    }
    this.#disk.completeMs = Math.max(this.#disk.completeMs, closedMs)
    return Math.min(this.#disk.completeMs, ...[...receipts.values()].map((ms) => ms - 1))
  }

  fetch(workerId: string, count: number, isBusy: boolean): FetchedChunks | 'taken' {
    const { wait, jobs } = this.#disk
    if (!this.#takeTurn({ workerId, isBusy })) return 'taken'
    this.#fetches += 1
    const token = `${workerId}:${this.#fetches}`
    const ids = wait.slice(0, count)
    this.#disk.wait = wait.slice(ids.length)
    const chunks = ids.flatMap((id) => {
      const job = jobs.get(id)
      if (job === undefined) return []
      this.#lock(id, { token, untilMs: this.#nowMs + LOCK_MS })
      return heldChunk(id, job)
    })
    const tokens = new Map(chunks.map(({ id }) => [id, token]))
    return { chunks, hasMore: this.#disk.wait.length > 0, tokens }
  }

  yieldTurn(workerId: string): void {
    if (this.#disk.turn?.value.workerId === workerId) this.#disk.turn = undefined
  }

  load(ids: readonly string[]): HeldChunk[] | undefined {
    const chunks = ids.flatMap((id) => {
      const job = this.#disk.jobs.get(id)
      return job === undefined ? [] : [heldChunk(id, job)]
    })
    return chunks.length === ids.length ? chunks : undefined
  }

  renew(tokens: ReadonlyMap<string, string>, lockMs = LOCK_MS): void {
    for (const id of this.#locked(tokens))
      this.#lock(id, { token: tokens.get(id) ?? '', untilMs: this.#nowMs + lockMs })
  }

  /** Requeues the jobs whose locks have expired. */
  requeueStalled(): void {
    for (const [id, job] of this.#disk.jobs) {
      if (job.lock === undefined || this.#isLocked(job)) continue
      this.#lock(id, undefined)
      this.#disk.wait = [id, ...this.#disk.wait]
    }
  }

  requeue(tokens: ReadonlyMap<string, string>, end: 'front' | 'back'): void {
    const ids = this.#locked(tokens)
    for (const id of ids) this.#lock(id, undefined)
    this.#disk.wait = end === 'front' ? [...ids, ...this.#disk.wait] : [...this.#disk.wait, ...ids]
  }

  fail(id: string, token: string): void {
    for (const failed of this.#locked(new Map([[id, token]]))) {
      this.#lock(failed, undefined)
      this.#disk.failed.add(failed)
    }
  }

  claim(batchId: string, ids: readonly string[]): (string | undefined)[] {
    const { jobs, batches, owners } = this.#disk
    const result = ids.map((id) => {
      const owner = this.#valid(owners.get(id))
      if (owner !== undefined) return owner
      if (!jobs.has(id)) return undefined
      owners.set(id, { value: batchId, untilMs: Number.POSITIVE_INFINITY })
      return batchId
    })
    const members = ids.filter((_id, index) => result[index] === batchId)
    if (members.length > 0 && this.read(batchId) === undefined) {
      const value: BatchRecord = { state: 'claimed', members, splits: new Set(), repairs: 0 }
      batches.set(batchId, { value, untilMs: Number.POSITIVE_INFINITY })
    }
    return result
  }

  read(batchId: string): BatchRecord | undefined {
    return this.#valid(this.#disk.batches.get(batchId))
  }

  recordSplit(batchId: string, range: string, repair: number): boolean {
    const batch = this.read(batchId)
    if (batch?.state !== 'claimed') return false
    if (batch.repairs !== repair) throw new Error('another repair has begun')
    this.#change(batchId, { ...batch, splits: new Set([...batch.splits, range]) })
    return true
  }

  beginRepair(batchId: string, workerId: string): BatchRepair | undefined {
    const { leases } = this.#disk
    const owner = this.#valid(leases.get(batchId))
    if (owner !== undefined && owner !== workerId) return undefined
    leases.set(batchId, { value: workerId, untilMs: this.#nowMs + LEASE_TTL_MS })
    const batch = this.read(batchId)
    if (batch === undefined) return { number: 0, splits: new Set() }
    const repairs = batch.repairs + 1
    this.#change(batchId, { ...batch, repairs })
    return { number: repairs, splits: batch.splits }
  }

  renewLease(batchId: string, workerId: string): void {
    if (this.#valid(this.#disk.leases.get(batchId)) === workerId)
      this.#disk.leases.set(batchId, { value: workerId, untilMs: this.#nowMs + LEASE_TTL_MS })
  }

  endLease(batchId: string, workerId: string): void {
    if (this.#disk.leases.get(batchId)?.value === workerId) this.#disk.leases.delete(batchId)
  }

  finish(
    { id, members, rows }: StoredBatch,
    repair: number | undefined,
    tokens: ReadonlyMap<string, string>,
  ): boolean {
    const batch = this.read(id)
    if (batch?.state === 'claimed' && batch.repairs !== repair) return false
    if (batch?.state === 'claimed') {
      const { inserted, deadLettered } = this.totals
      this.#disk.totals = {
        ...this.totals,
        inserted: inserted + (rows?.inserted ?? 0),
        deadLettered: deadLettered + (rows?.deadLettered ?? 0),
      }
    }
    for (const [jobId, token] of tokens) {
      const job = this.#disk.jobs.get(jobId)
      // A job that waits again or has failed stays there. A job that another worker has locked is left to that worker.
      if (job?.lock === undefined || (this.#isLocked(job) && job.lock.token !== token)) continue
      this.#disk.jobs.delete(jobId)
      this.#disk.receipts.delete(jobId)
    }
    const ttlMs = members.some((member) => this.#disk.jobs.has(member)) ? CONFIRMED_TTL_MS : RELEASED_TTL_MS
    const untilMs = this.#nowMs + ttlMs
    if (batch !== undefined) this.#change(id, { ...batch, state: 'confirmed' }, untilMs)
    for (const member of members) {
      const owner = this.#disk.owners.get(member)
      if (owner?.value === id)
        this.#disk.owners.set(member, { value: id, untilMs: Math.min(owner.untilMs, untilMs) })
    }
    return true
  }

  get #nowMs(): number {
    return this.#time.nowMs + this.#clockOffsetMs
  }

  /** Changes the record of a batch, which is never kept longer than before. */
  #change(id: string, value: BatchRecord, untilMs = Number.POSITIVE_INFINITY): void {
    const { batches } = this.#disk
    batches.set(id, { value, untilMs: Math.min(untilMs, batches.get(id)?.untilMs ?? untilMs) })
  }

  #valid<T>(entry: Expiring<T> | undefined): T | undefined {
    return entry !== undefined && entry.untilMs > this.#nowMs ? entry.value : undefined
  }

  /** @returns whether the worker has the turn now */
  #takeTurn(turn: Turn): boolean {
    const { untilMs = 0, value } = this.#disk.turn ?? {}
    const leftMs = untilMs - this.#nowMs
    const isMine = value?.workerId === turn.workerId
    if (leftMs > 0 && !isMine && (turn.isBusy || value?.isBusy === false)) return false
    if (!isMine || value.isBusy !== turn.isBusy || leftMs < TURN_TTL_MS / 2)
      this.#disk.turn = { value: turn, untilMs: this.#nowMs + TURN_TTL_MS }
    return true
  }

  #locked(tokens: ReadonlyMap<string, string>): string[] {
    return [...tokens].flatMap(([id, token]) => {
      const job = this.#disk.jobs.get(id)
      return job !== undefined && this.#isLocked(job) && job.lock?.token === token ? [id] : []
    })
  }

  #isLocked({ lock }: Job): boolean {
    return lock !== undefined && lock.untilMs > this.#nowMs
  }

  #lock(id: string, lock: Job['lock']): void {
    const job = this.#disk.jobs.get(id)
    if (job !== undefined) this.#disk.jobs.set(id, { ...job, lock })
  }
}

function copyOf(disk: Disk): Disk {
  const { jobs, owners, batches, leases, failed, receipts, admitted } = disk
  return {
    ...disk,
    jobs: new Map(jobs),
    owners: new Map(owners),
    batches: new Map(batches),
    leases: new Map(leases),
    failed: new Set(failed),
    receipts: new Map(receipts),
    admitted: new Map(admitted),
  }
}
