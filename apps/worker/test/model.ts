import { ClickHouseError } from '@clickhouse/client'
import { createLogger } from '@sluice/runtime'
import { encodeFrame, zstdLines } from '@sluice/schema'
import type { BatchRecord } from '../src/batch-ledger.ts'
import { BatchSplitter } from '../src/batch-splitter.ts'
import type { HeldChunk } from '../src/collector.ts'
import type { DeadLetter } from '../src/dead-letters.ts'
import { Delivery, type DeliveryDependencies } from '../src/delivery.ts'
import { Persistence } from '../src/persistence.ts'
import { Slots } from '../src/slots.ts'

/** A chunk of rows `ID-0`, `ID-1`, …; those with an index in `poison` are refused by the model of ClickHouse. */
export function makeChunk(id: string, rows: number, poison: readonly number[] = []): HeldChunk {
  const lines = Array.from({ length: rows }, (_, i) => `${poison.includes(i) ? 'poison-' : ''}${id}-${i}\n`)
  const text = lines.join('')
  return { id, rows, bytes: text.length, frame: encodeFrame(text) }
}

/** What survives the death of a worker: ClickHouse with its tokens, the ledger in Redis, the jobs in the queue. */
export class World {
  readonly rows: string[] = []
  readonly deadLetters: string[] = []
  readonly jobs = new Map<string, HeldChunk>()
  readonly inserts: { token: string; rows: number }[] = []
  readonly #tokens = new Set<string>()
  readonly #owners = new Map<string, string>()
  readonly #batches = new Map<
    string,
    { state: BatchRecord['state']; members: string[]; splits: Set<string> }
  >()
  #ids = 0

  constructor(chunks: readonly HeldChunk[]) {
    for (const chunk of chunks) this.jobs.set(chunk.id, chunk)
  }

  readonly makeId = (): string => `batch-${++this.#ids}`

  readonly inserter: DeliveryDependencies['inserter'] = {
    insert: async (frames, token) => {
      if (this.#tokens.has(token)) return
      const lines = frames.flatMap((frame) => zstdLines(frame)).map((line) => line.trim())
      if (lines.some((line) => line.startsWith('poison-'))) {
        throw new ClickHouseError({
          message: `cannot parse ${lines.join()}`,
          code: '117',
          type: 'INCORRECT_DATA',
        })
      }
      this.#tokens.add(token)
      this.inserts.push({ token, rows: lines.length })
      this.rows.push(...lines)
    },
  }

  readonly ledger: DeliveryDependencies['ledger'] = {
    claim: async (batchId, ids) => {
      const owners = ids.map((id) => {
        const owner = this.#owners.get(id) ?? (this.jobs.has(id) ? batchId : '')
        if (owner !== '') this.#owners.set(id, owner)
        return owner
      })
      const members = ids.filter((_id, index) => owners[index] === batchId)
      if (members.length > 0 && !this.#batches.has(batchId)) {
        this.#batches.set(batchId, { state: 'written', members, splits: new Set() })
      }
      return owners
    },
    read: async (batchId) => {
      const batch = this.#batches.get(batchId)
      return batch === undefined ? undefined : { ...batch, splits: new Set(batch.splits) }
    },
    recordSplit: async (batchId, range) => {
      this.#batches.get(batchId)?.splits.add(range)
    },
    confirm: async (batchId) => {
      const batch = this.#batches.get(batchId)
      if (batch !== undefined) batch.state = 'inserted'
    },
    release: async (batchId, ids) => {
      this.#batches.delete(batchId)
      for (const id of ids) this.#owners.delete(id)
    },
  }

  readonly addDeadLetter = async ({ text }: DeadLetter, token: string): Promise<void> => {
    if (this.#tokens.has(token)) return
    this.#tokens.add(token)
    this.deadLetters.push(text)
  }
}

/** How each call of a worker to the world goes: given its number, what happens to it. */
export type Fate = (call: number) => 'works' | 'fails' | 'lost answer' | 'dies before' | 'dies after'

/** A worker in the world, whose calls have fates. Once it died, none of its calls ever returns. */
export class ModelWorker {
  readonly delivery: Delivery
  readonly died: Promise<void>
  #isDead = false
  #calls = 0
  #die: () => void = () => undefined
  readonly #fate: Fate

  constructor(world: World, fate: Fate, onCompleted: (id: string) => void = () => undefined) {
    this.#fate = fate
    this.died = new Promise((resolve) => {
      this.#die = () => {
        this.#isDead = true
        resolve()
      }
    })
    const { signal } = new AbortController()
    const persistence = new Persistence(createLogger('model', 'silent'), signal, async () => undefined)
    // One: whoever does not give it back is found out.
    const slots = new Slots(1, signal)
    const ledger: DeliveryDependencies['ledger'] = {
      claim: (...args) => this.#call(() => world.ledger.claim(...args)),
      read: (...args) => this.#call(() => world.ledger.read(...args)),
      recordSplit: (...args) => this.#call(() => world.ledger.recordSplit(...args)),
      confirm: (...args) => this.#call(() => world.ledger.confirm(...args)),
      release: (...args) => this.#call(() => world.ledger.release(...args)),
    }
    const inserter: DeliveryDependencies['inserter'] = {
      insert: (...args) => this.#call(() => world.inserter.insert(...args)),
    }
    const deadLetters = {
      add: (letter: DeadLetter, token: string) => this.#call(() => world.addDeadLetter(letter, token)),
    }
    this.delivery = new Delivery({
      ledger,
      inserter,
      slots,
      splitter: new BatchSplitter({ ledger, inserter, slots, deadLetters, persistence }),
      persistence,
      loadChunk: (id) => this.#call(async () => world.jobs.get(id)),
      makeId: world.makeId,
      now: () => 0,
      takeOverMs: 1_000,
    })
    this.#complete = (id) => {
      if (!world.jobs.delete(id)) return
      onCompleted(id)
      this.delivery.completed(id)
    }
  }

  readonly #complete: (id: string) => void

  /** Delivers chunks and completes their jobs. Resolves when all are completed, or the worker died. */
  async work(chunks: readonly HeldChunk[]): Promise<void> {
    await Promise.race([this.died, this.#deliver(chunks)])
  }

  async #deliver(chunks: readonly HeldChunk[]): Promise<void> {
    const outcomes = await this.delivery.deliver(chunks)
    for (const { id } of chunks) {
      await outcomes.get(id)
      // A completion that fails leaves the job to be delivered again.
      await this.#call(async () => this.#complete(id)).catch(() => undefined)
    }
  }

  async #call<T>(run: () => Promise<T>): Promise<T> {
    if (this.#isDead) return new Promise(() => undefined)
    const fate = this.#fate(++this.#calls)
    if (fate === 'fails') throw new Error('connection refused')
    if (fate === 'dies before') return this.#stop()
    const result = await run()
    if (fate === 'dies after') return this.#stop()
    if (fate === 'lost answer') throw new Error('connection reset')
    return result
  }

  #stop(): Promise<never> {
    this.#die()
    return new Promise(() => undefined)
  }
}
