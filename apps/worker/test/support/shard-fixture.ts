import type { HeldChunk } from '@sluice/queue'
import { Semaphore } from '@sluice/runtime'
import type { HeldBudget } from '../../src/collector.ts'
import { RejectedProjects } from '../../src/rejected-projects.ts'
import { Shard } from '../../src/shard.ts'
import { makeChunk } from './chunks.ts'
import { TestClock } from './test-clock.ts'

/** Each has another value, so that a test notices which one is used. */
export const limits = {
  intervalMs: 20,
  idleIntervalMs: 100,
  standbyIntervalMs: 1_000,
  failedIntervalMs: 700,
  chunksPerRoundMax: 3,
} as const
/** The time for which chunks are collected. */
export const WAIT_MS = 50
/** Chunks per batch. */
export const BATCH_CHUNKS_MAX = 4

/** A shard whose queue, health and delivery are under the control of the test. What it requests is in `calls`, in order. */
export class ShardFixture {
  readonly clock = new TestClock()
  readonly stopping = new AbortController()
  givingUp = new AbortController()
  readonly calls: string[] = []
  /** The times of the fetches. */
  readonly fetchedAtMs: number[] = []
  /** What is waiting in the queue. */
  readonly waiting: HeldChunk[] = []
  isTurnTaken = false
  /** Called before each fetch resolves. */
  beforeFetch: () => void | Promise<void> = () => undefined
  /** Called during each delivery. */
  whileDelivering: (chunks: readonly HeldChunk[]) => Promise<void> = () => Promise.resolve()
  /** Errors of the next requests. Others succeed. */
  readonly errors = new Map<'requeue' | 'insert nothing', Error>()
  fetchMax = Number.POSITIVE_INFINITY
  readonly room = { chunks: 100, bytes: 100 }
  readonly rejectedProjects = new RejectedProjects(this.clock)
  readonly held = { chunks: 0, bytes: 0 }
  heldInAllShards = 0
  readonly delivery = { repairs: 0, chunksInRepair: 0 }
  isIdle: Promise<void> = Promise.resolve()
  readonly insertSlots: Semaphore
  /** How often the shard has asked for an insert slot. */
  slotsWanted = 0
  #ids = 0

  constructor(slots = 1) {
    this.insertSlots = new Semaphore(slots, this.stopping.signal)
  }

  /** Adds chunks to the queue. They have the ids 1, 2, … */
  add(count: number): HeldChunk[] {
    const chunks = Array.from({ length: count }, () => makeChunk(String((this.#ids += 1))))
    this.waiting.push(...chunks)
    return chunks
  }

  start(): Shard {
    const { clock, calls, delivery } = this
    const giveUpSignal = (): AbortSignal => this.givingUp.signal
    return new Shard({
      consumer: {
        fetch: async (count, { isBusy }) => {
          this.fetchedAtMs.push(clock.nowMs())
          calls.push(`fetch ${count}${isBusy ? ', busy' : ''}`)
          await this.beforeFetch()
          if (this.isTurnTaken) return undefined
          const chunks = this.waiting.splice(0, count)
          return { chunks, hasMore: this.waiting.length > 0 }
        },
        requeue: async (ids, end) => this.#request('requeue', ` ${ids.join(' ')} to the ${end}`),
        forget: (ids) => void calls.push(`forget ${ids.join(' ')}`),
        heldChunks: 0,
        close: () => Promise.resolve(),
      },
      // Each chunk has one row.
      config: { BATCH_ROWS_MAX: BATCH_CHUNKS_MAX, BATCH_WAIT_MS: WAIT_MS },
      delivery: {
        deliver: async (chunks) => {
          calls.push(`deliver ${chunks.map(({ id }) => id).join(' ')}`)
          await this.whileDelivering(chunks)
        },
        close: () => this.isIdle,
        get repairs() {
          return delivery.repairs
        },
        get chunksInRepair() {
          return delivery.chunksInRepair
        },
      },
      insertSlots: {
        run: (task) => {
          this.slotsWanted += 1
          return this.insertSlots.run(task)
        },
      },
      health: {
        fetchMax: (held) => {
          this.heldInAllShards = held
          return this.fetchMax
        },
        probing: () => void calls.push('probing'),
        get giveUpSignal() {
          return giveUpSignal()
        },
      },
      heldInAllShards: () => 7,
      rejectedProjects: this.rejectedProjects,
      chunkBudget: this.#budget('chunks'),
      byteBudget: this.#budget('bytes'),
      insertNothing: async () => this.#request('insert nothing'),
      clock,
      fetchLimits: limits,
    })
  }

  /** The calls that begin with one of these words. */
  only(...words: readonly string[]): string[] {
    return this.calls.filter((call) => words.some((word) => call.startsWith(word)))
  }

  /** Takes an insert slot, as another shard does. @returns what frees it */
  takeSlot(): () => void {
    const taken = Promise.withResolvers<void>()
    void this.insertSlots.run(() => taken.promise)
    return taken.resolve
  }

  #budget(of: 'chunks' | 'bytes'): Pick<HeldBudget, 'share'> {
    return { share: () => ({ set: (held) => (this.held[of] = held), room: () => this.room[of] }) }
  }

  #request(name: 'requeue' | 'insert nothing', details = ''): void {
    this.calls.push(`${name}${details}`)
    const error = this.errors.get(name)
    if (error !== undefined) throw error
  }
}
