import type { QueueEnd } from '@sluice/queue'
import { chunkOf } from '../../packages/queue/test/support/consumer-fixture.ts'
import type { QueueScripts, Tokens } from './queue-scripts.ts'
import { LOCK_MS } from './simulated-redis.ts'

/** A deadline that an add meets on a busy machine too. */
const ADD_WITHIN_MS = 10_000
/** Longer than the steps of a scenario take, and shorter than anything that expires. */
export const MARGIN_MS = 1_000

type Ids = readonly string[]

/**
 * The steps of workers on one queue, which use its scripts as the code of the worker does. A worker has the token of its last fetch of each
 * chunk, and may use it after it has lost the lock. A name stands for the last batch that was claimed by this name: no id is used for two
 * batches.
 */
export function workersOn(scripts: QueueScripts) {
  const { pass, counts, load, yieldTurn, requeueStalled, ledger } = scripts
  const tokens = new Map<string, Map<string, string>>()
  const batches = new Map<string, { readonly id: string; readonly members: Ids }>()
  let claims = 0

  const batchOf = (name: string): { readonly id: string; readonly members: Ids } =>
    batches.get(name) ?? { id: name, members: [] }
  /** The tokens of a worker for chunks, in the order of the ids. */
  const tokensOf = (workerId: string, ids: Ids): Tokens => {
    const own = tokens.get(workerId)
    return new Map(ids.flatMap((id) => (own?.has(id) === true ? [[id, own.get(id) ?? '']] : [])))
  }
  const fetchAll = async (): Promise<Ids | 'taken'> => {
    for (const workerId of tokens.keys()) await yieldTurn(workerId)
    const fetched = await scripts.fetch('observer', 10, false)
    await yieldTurn('observer')
    if (fetched === 'taken') return fetched
    tokens.set('observer', new Map(fetched.tokens))
    return fetched.chunks.map(({ id }) => id)
  }

  const read = (batch: string): unknown => ledger.read(batchOf(batch).id)
  /** Adds a chunk whose row is its id. */
  const add = async (id: string, receivedMs = 0, withinMs = ADD_WITHIN_MS): Promise<unknown> => {
    const notAfterMs = (await scripts.nowMs()) + withinMs
    return settled(() => scripts.add(id, { ...chunkOf(id), receivedMs }, notAfterMs))
  }
  const fetch = async (workerId: string, count: number, isBusy = false): Promise<unknown> => {
    const fetched = await scripts.fetch(workerId, count, isBusy)
    if (fetched === 'taken') return fetched
    const { tokens: more, ...others } = fetched
    tokens.set(workerId, new Map([...(tokens.get(workerId) ?? []), ...more]))
    return others
  }
  const requeue = (workerId: string, ids: Ids, end: QueueEnd): unknown =>
    scripts.requeue(tokensOf(workerId, ids), end)
  /** @returns the names of the batches that the chunks belong to, with the numbers of their claims */
  const claim = async (batch: string, ids: Ids): Promise<unknown> => {
    claims += 1
    const id = `${batch}-${claims}`
    const owners = await ledger.claim(id, ids)
    const members = ids.filter((_id, index) => owners[index] === id)
    if (members.length > 0) batches.set(batch, { id, members })
    return owners
  }
  /** The locks of all jobs expire, and those jobs return to the queue. */
  const stall = async (): Promise<void> => {
    await pass(LOCK_MS + MARGIN_MS)
    await requeueStalled()
  }

  return {
    pass,
    counts,
    load,
    yieldTurn,
    requeueStalled,
    read,
    add,
    complete: scripts.complete,
    fetch,
    requeue,
    claim,
    stall,
    /** The order of jobs that return to the queue is not defined. */
    fetchInAnyOrder: async (workerId: string, count: number) => void (await fetch(workerId, count)),
    renew: (workerId: string, ids: Ids, lockMs: number) => scripts.renew(tokensOf(workerId, ids), lockMs),
    fail: (workerId: string, id: string) => scripts.fail(id, tokensOf(workerId, [id]).get(id) ?? ''),
    /** Repeats the claim of a batch, whose response was lost. */
    claimAgain: (batch: string) => {
      const { id, members } = batchOf(batch)
      return members.length === 0 ? [] : ledger.claim(id, members)
    },
    beginRepair: (batch: string, workerId: string) => ledger.beginRepair(batchOf(batch).id, workerId),
    renewLease: (batch: string, workerId: string) => ledger.renewLease(batchOf(batch).id, workerId),
    endLease: (batch: string, workerId: string) => ledger.endLease(batchOf(batch).id, workerId),
    split: (batch: string, range: string, repair: number) =>
      settled(() => ledger.recordSplit(batchOf(batch).id, range, repair)),
    /** Finishes what the worker has of a batch. */
    finish: (workerId: string, batch: string, repair: number | undefined, ids?: Ids) => {
      const { id, members } = batchOf(batch)
      const rows = { inserted: members.length, deadLettered: 1 }
      return scripts.finish({ id, members, rows }, repair, tokensOf(workerId, ids ?? members))
    },
    /** Adds chunks, lets a worker fetch all of them, and claims them as one batch. */
    claimed: async (workerId: string, batch: string, ids: Ids) => {
      for (const id of ids) await add(id)
      await fetch(workerId, ids.length)
      await claim(batch, ids)
    },
    /** Like `stall`, with a defined order: the check returns jobs in any order, so all that wait are sorted. @returns their ids */
    stallInOrder: async () => {
      await stall()
      const waiting = await fetchAll()
      if (waiting === 'taken') return waiting
      await requeue('observer', waiting.toSorted(), 'back')
      return waiting.toSorted()
    },
    /** The number of jobs and failed jobs, and the ids of the waiting ones. It fetches them. */
    left: async () => ({ ...(await counts()), waiting: await fetchAll() }),
    /** The record of a batch shortly before a moment, and shortly after it. */
    recordAround: async (batch: string, ms: number) => {
      await pass(ms - MARGIN_MS)
      const before = await read(batch)
      await pass(2 * MARGIN_MS)
      return [before, await read(batch)]
    },
  }
}

async function settled(step: () => unknown): Promise<unknown> {
  try {
    return await step()
  } catch {
    return 'rejected'
  }
}
