import { ClickHouseError } from '@clickhouse/client'
import { createLogger } from '@sluice/runtime'
import { encodeFrame, zstdLines } from '@sluice/schema'
import type { BatchRecord } from '../src/batch-ledger.ts'
import { BatchSplitter, type SplitterDependencies } from '../src/batch-splitter.ts'
import type { HeldChunk } from '../src/collector.ts'
import type { DeadLetter } from '../src/dead-letters.ts'
import { Delivery, type DeliveryDependencies } from '../src/delivery.ts'
import { Persistence } from '../src/persistence.ts'
import { Sender, type SenderDependencies } from '../src/sender.ts'
import { Slots } from '../src/slots.ts'

/** A chunk of rows with the ids `ID-0`, `ID-1`, … and nothing else; those with an index in `poison` are refused by the model of ClickHouse. */
export function makeChunk(id: string, rows: number, poison: readonly number[] = []): HeldChunk {
  const lines = Array.from(
    { length: rows },
    (_, i) => `\t\t\t${poison.includes(i) ? 'poison-' : ''}${id}-${i}\n`,
  )
  const text = lines.join('')
  return { id, rows, bytes: text.length, frame: encodeFrame(text) }
}

export function memoryLimitExceeded(): ClickHouseError {
  return new ClickHouseError({ message: 'memory', code: '241', type: 'MEMORY_LIMIT_EXCEEDED' })
}

type Ledger = DeliveryDependencies['ledger'] & SplitterDependencies['ledger']

/** What survives the death of a worker: ClickHouse with its tokens, the ledger in Redis, the jobs in the queue. */
export class World {
  readonly rows: string[] = []
  readonly deadLetters: string[] = []
  readonly jobs = new Map<string, HeldChunk>()
  readonly inserts: { token: string; rows: number }[] = []
  readonly #tokens = new Set<string>()
  readonly #letterTokens = new Set<string>()
  readonly #owners = new Map<string, string>()
  readonly #batches = new Map<
    string,
    { state: BatchRecord['state']; members: string[]; splits: Set<string> }
  >()
  #ids = 0
  #nowMs = 0
  /** Inserts that were given up, and that land all the same. */
  #late: { readonly dueMs: number; readonly land: () => boolean }[] = []

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
    for (const { land } of due) land()
  }

  /** How long after it was given up an insert lands, ms. Undefined for one that is answered. */
  landsAfterMs: () => number | undefined = () => undefined

  /** Whether ClickHouse has no memory now for an insert of more than one row. */
  isShortOfMemory: () => boolean = () => false

  /** Whether ClickHouse dies now, having noted a token and not its rows. */
  diesInCommit: () => boolean = () => false

  readonly inserter: SenderDependencies['inserter'] = {
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
      if (lines.length > 1 && this.isShortOfMemory()) {
        throw memoryLimitExceeded()
      }
      const land = (): boolean => {
        if (this.#tokens.has(token)) return true
        this.#tokens.add(token)
        if (this.diesInCommit()) return false
        this.inserts.push({ token, rows: lines.length })
        this.rows.push(...lines)
        return true
      }
      const landsAfterMs = this.landsAfterMs()
      if (landsAfterMs === undefined && land()) return
      if (landsAfterMs !== undefined) this.#late.push({ dueMs: this.#nowMs + landsAfterMs, land })
      throw new Error('no answer')
    },
  }

  readonly storedRows: SenderDependencies['storedRows'] = {
    find: async () => new Set(this.rows),
  }

  /** As when more inserts came than the table remembers. Dead letters have a table of their own. */
  forgetTokens(): void {
    this.#tokens.clear()
  }

  readonly ledger: Ledger = {
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
      const batch = this.#batches.get(batchId)
      if (batch?.state !== 'written') return false
      batch.splits.add(range)
      return true
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
    if (this.#letterTokens.has(token)) return
    this.#letterTokens.add(token)
    this.deadLetters.push(text.trim())
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
    const logger = createLogger('model', 'silent')
    // Long pauses: a worker that waits for what may still land would else never live to the end of it.
    const persistence = new Persistence(logger, signal, (ms) => world.sleep(100 * ms))
    // One: whoever does not give it back is found out.
    const slots = new Slots(1, signal)
    const unpacking = new Slots(1, signal)
    const recovering = new Slots(1, signal)
    const now = (): number => world.nowMs
    const ledger: Ledger = {
      claim: (...args) => this.#call(() => world.ledger.claim(...args)),
      read: (...args) => this.#call(() => world.ledger.read(...args)),
      recordSplit: (...args) => this.#call(() => world.ledger.recordSplit(...args)),
      confirm: (...args) => this.#call(() => world.ledger.confirm(...args)),
      release: (...args) => this.#call(() => world.ledger.release(...args)),
    }
    const sender = new Sender({
      inserter: { insert: (...args) => this.#call(() => world.inserter.insert(...args)) },
      storedRows: { find: (...args) => this.#call(() => world.storedRows.find(...args)) },
      areTokensAtomic: false,
      sleep: world.sleep,
      logger,
      now,
    })
    const deadLetters = {
      tries: (letter: DeadLetter, token: string) => () =>
        this.#call(() => world.addDeadLetter(letter, token)),
    }
    this.delivery = new Delivery({
      ledger,
      sender,
      slots,
      recovering,
      splitter: new BatchSplitter({ ledger, sender, slots, unpacking, deadLetters, persistence }),
      persistence,
      loadChunk: (id) => this.#call(async () => world.jobs.get(id)),
      makeId: world.makeId,
      now,
      takeOverMs: 15_000,
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
