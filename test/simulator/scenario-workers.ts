import type { QueueEnd } from '@sluice/queue'
import { chunkOf } from '../../packages/queue/test/support/consumer-fixture.ts'
import type { RealScripts, SimulatedScripts, Tokens } from './queue-scripts.ts'
import { LOCK_MS } from './simulated-redis.ts'

/** A deadline that an add meets on a busy machine too. */
const ADD_WITHIN_MS = 10_000
/** Longer than the steps of a scenario take, and shorter than anything that expires. */
export const MARGIN_MS = 1_000

/**
 * Workers on one queue, which use its scripts as the code of the worker does. A worker has the token of its last fetch of each chunk, and
 * may use it after it has lost the lock. A name stands for the last batch that was claimed by this name: no id is used for two batches.
 */
export class Workers {
  readonly scripts: RealScripts | SimulatedScripts
  readonly #tokens = new Map<string, Map<string, string>>()
  readonly #batches = new Map<string, { readonly id: string; readonly members: readonly string[] }>()
  #claims = 0

  constructor(scripts: RealScripts | SimulatedScripts) {
    this.scripts = scripts
  }

  /** Adds a chunk whose row is its id. */
  async add(id: string, withinMs = ADD_WITHIN_MS): Promise<'added' | 'rejected'> {
    const notAfterMs = (await this.scripts.nowMs()) + withinMs
    return settled(async () => {
      await this.scripts.add(id, chunkOf(`${id}\n`), notAfterMs)
      return 'added' as const
    })
  }

  async fetch(workerId: string, count: number, isBusy = false): Promise<unknown> {
    const fetched = await this.scripts.fetch(workerId, count, isBusy)
    if (fetched === 'taken') return fetched
    const { tokens, ...others } = fetched
    this.#tokens.set(workerId, new Map([...(this.#tokens.get(workerId) ?? []), ...tokens]))
    return others
  }

  /** The order of jobs that return to the queue is not defined. */
  async fetchInAnyOrder(workerId: string, count: number): Promise<void> {
    await this.fetch(workerId, count)
  }

  requeue(workerId: string, ids: readonly string[], end: QueueEnd): unknown {
    return this.scripts.requeue(this.#tokensOf(workerId, ids), end)
  }

  renew(workerId: string, ids: readonly string[], lockMs: number): unknown {
    return this.scripts.renew(this.#tokensOf(workerId, ids), lockMs)
  }

  fail(workerId: string, id: string): unknown {
    return this.scripts.fail(id, this.#tokensOf(workerId, [id]).get(id) ?? '')
  }

  /** @returns the names of the batches that the chunks belong to, with the numbers of their claims */
  async claim(batch: string, ids: readonly string[]): Promise<readonly (string | undefined)[]> {
    this.#claims += 1
    const id = `${batch}-${this.#claims}`
    const owners = await this.scripts.ledger.claim(id, ids)
    const members = ids.filter((_id, index) => owners[index] === id)
    if (members.length > 0) this.#batches.set(batch, { id, members })
    return owners
  }

  /** Repeats the claim of a batch, whose response was lost. */
  claimAgain(batch: string): unknown {
    const { id, members } = this.#batch(batch)
    return members.length === 0 ? [] : this.scripts.ledger.claim(id, members)
  }

  read(batch: string): unknown {
    return this.scripts.ledger.read(this.#batch(batch).id)
  }

  /** Begins a repair, or renews or ends its lease. */
  async lease(
    how: 'beginRepair' | 'renewLease' | 'endLease',
    batch: string,
    workerId: string,
  ): Promise<unknown> {
    const result = await this.scripts.ledger[how](this.#batch(batch).id, workerId)
    return how === 'beginRepair' ? result : undefined
  }

  split(batch: string, range: string, repair: number): Promise<boolean | 'rejected'> {
    return settled(() => this.scripts.ledger.recordSplit(this.#batch(batch).id, range, repair))
  }

  /** Finishes what the worker has of a batch. */
  async finish(
    workerId: string,
    batch: string,
    repair: number | undefined,
    ids?: readonly string[],
  ): Promise<boolean> {
    const { id, members } = this.#batch(batch)
    const rows = { inserted: members.length, deadLettered: 1 }
    return this.scripts.finish({ id, members, rows }, repair, this.#tokensOf(workerId, ids ?? members))
  }

  #batch(name: string): { readonly id: string; readonly members: readonly string[] } {
    return this.#batches.get(name) ?? { id: name, members: [] }
  }

  /** Adds chunks, lets a worker fetch all of them, and claims them as one batch. */
  async claimed(workerId: string, batch: string, ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.add(id)
    await this.fetch(workerId, ids.length)
    await this.claim(batch, ids)
  }

  /** The locks of all jobs expire, and those jobs return to the queue. */
  async stall(): Promise<void> {
    await this.scripts.pass(LOCK_MS + MARGIN_MS)
    await this.scripts.requeueStalled()
  }

  /** The same, with a defined order: the check returns jobs in any order, so all that wait are sorted. @returns their ids */
  async stallInOrder(): Promise<unknown> {
    await this.stall()
    const waiting = await this.#fetchAll()
    if (waiting === 'taken') return waiting
    const ids = waiting.toSorted()
    await this.requeue('observer', ids, 'back')
    return ids
  }

  /** The number of jobs and failed jobs, and the ids of the waiting ones. It fetches them. */
  async left(): Promise<unknown> {
    const counts = await this.scripts.counts()
    return { ...counts, waiting: await this.#fetchAll() }
  }

  /** The record of a batch shortly before a moment, and shortly after it. */
  async recordAround(batch: string, ms: number): Promise<unknown> {
    await this.scripts.pass(ms - MARGIN_MS)
    const before = await this.read(batch)
    await this.scripts.pass(2 * MARGIN_MS)
    return [before, await this.read(batch)]
  }

  async #fetchAll(): Promise<readonly string[] | 'taken'> {
    for (const workerId of this.#tokens.keys()) await this.scripts.yieldTurn(workerId)
    const fetched = await this.scripts.fetch('observer', 10, false)
    await this.scripts.yieldTurn('observer')
    if (fetched === 'taken') return fetched
    this.#tokens.set('observer', new Map(fetched.tokens))
    return fetched.chunks.map(({ id }) => id)
  }

  /** The tokens of a worker for chunks, in the order of the ids. */
  #tokensOf(workerId: string, ids: readonly string[]): Tokens {
    const tokens = this.#tokens.get(workerId)
    return new Map(ids.flatMap((id) => (tokens?.has(id) === true ? [[id, tokens.get(id) ?? '']] : [])))
  }
}

async function settled<T>(step: () => T | Promise<T>): Promise<T | 'rejected'> {
  try {
    return await step()
  } catch {
    return 'rejected'
  }
}
