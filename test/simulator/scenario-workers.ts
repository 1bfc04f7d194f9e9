import type { QueueEnd } from '@sluice/queue'
import { chunkOf } from '../../packages/queue/test/support/consumer-fixture.ts'
import { LOCK_MS, type QueueScripts, type Tokens } from './queue-scripts.ts'

/** A deadline that an add meets on a busy machine too. */
export const ADD_WITHIN_MS = 10_000
/** Longer than the steps of a scenario take, and shorter than anything that expires. */
export const MARGIN_MS = 1_000
/** The batch of most scenarios. */
export const BATCH = 'a-batch'

/** Workers on one queue. A worker has the token of its last fetch of each chunk, and may use it after it has lost the lock. */
export class Workers {
  readonly scripts: QueueScripts
  readonly #tokens = new Map<string, Map<string, string>>()

  constructor(scripts: QueueScripts) {
    this.scripts = scripts
  }

  /** Adds chunks whose rows are their ids. */
  async add(...ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.scripts.add(id, chunkOf(`${id}\n`), ADD_WITHIN_MS)
  }

  async fetch(workerId: string, count: number, isBusy = false): Promise<unknown> {
    const fetch = await this.scripts.fetch(workerId, count, isBusy)
    if (fetch === 'taken') return fetch
    this.#tokens.set(workerId, new Map([...(this.#tokens.get(workerId) ?? []), ...fetch.tokens]))
    return { chunks: fetch.chunks, hasMore: fetch.hasMore }
  }

  /** The tokens of a worker for chunks, in the order of the ids. */
  tokens(workerId: string, ids: readonly string[]): Tokens {
    const tokens = this.#tokens.get(workerId)
    return new Map(ids.flatMap((id) => (tokens?.has(id) === true ? [[id, tokens.get(id) ?? '']] : [])))
  }

  async requeue(workerId: string, ids: readonly string[], end: QueueEnd): Promise<void> {
    await this.scripts.requeue(this.tokens(workerId, ids), end)
  }

  async renew(workerId: string, ids: readonly string[]): Promise<void> {
    await this.scripts.renew(this.tokens(workerId, ids))
  }

  async fail(workerId: string, id: string): Promise<void> {
    await this.scripts.fail(id, this.tokens(workerId, [id]).get(id) ?? '')
  }

  /** Finishes the batch, with these members. */
  async finish(workerId: string, members: readonly string[], repair: number | undefined): Promise<boolean> {
    const rows = { inserted: members.length - 1, deadLettered: 1 }
    return this.scripts.finish({ id: BATCH, members, rows }, repair, this.tokens(workerId, members))
  }

  /** Adds chunks, lets a worker fetch all of them, and claims them as one batch. */
  async claimed(workerId: string, ...ids: readonly string[]): Promise<readonly string[]> {
    await this.add(...ids)
    await this.fetch(workerId, ids.length)
    await this.scripts.claim(BATCH, ids)
    return ids
  }

  /** Persists that ranges of the batch are split, in a repair. */
  async split(...ranges: readonly string[]): Promise<void> {
    const repair = await this.scripts.beginRepair(BATCH, 'a-worker')
    for (const range of ranges) await this.scripts.recordSplit(BATCH, range, repair?.number ?? -1)
    await this.scripts.endLease(BATCH, 'a-worker')
  }

  /** The locks of all jobs expire, and those jobs return to the queue. */
  async stall(): Promise<void> {
    await this.scripts.pass(LOCK_MS + MARGIN_MS)
    await this.scripts.requeueStalled()
  }

  /** The number of jobs and failed jobs, and the ids of the waiting ones. It fetches them. */
  async left(): Promise<unknown> {
    const { scripts } = this
    const counts = await scripts.counts()
    for (const workerId of this.#tokens.keys()) await scripts.yieldTurn(workerId)
    const fetch = await scripts.fetch('observer', 10, false)
    await scripts.yieldTurn('observer')
    return { ...counts, waiting: fetch === 'taken' ? fetch : fetch.chunks.map(({ id }) => id) }
  }

  /** The record of the batch shortly before a moment, and shortly after it. */
  async recordAround(ms: number): Promise<unknown> {
    await this.scripts.pass(ms - MARGIN_MS)
    const before = await this.scripts.read(BATCH)
    await this.scripts.pass(2 * MARGIN_MS)
    return [before, await this.scripts.read(BATCH)]
  }
}
