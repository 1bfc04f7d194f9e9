import type { ShardProgress } from './shard-progress.ts'
import type { ShardQueue } from './shard-queue.ts'

/** The same queue. The progress of its shard learns what ends, and what does not. */
export function observeQueue({ ledger, consumer }: ShardQueue, progress: ShardProgress): ShardQueue {
  return {
    ledger: {
      claim: (...args) => progress.track('claim', ledger.claim(...args)),
      read: (batchId) => ledger.read(batchId),
      recordSplit: async (...args) => {
        const isClaimed = await ledger.recordSplit(...args)
        progress.alive()
        return isClaimed
      },
      beginRepair: (...args) => ledger.beginRepair(...args),
      renewLease: (...args) => ledger.renewLease(...args),
      endLease: (...args) => ledger.endLease(...args),
    },
    consumer: {
      fetch: async (count, turn) => {
        try {
          const fetch = await consumer.fetch(count, turn)
          // A worker with room fetches what is waiting, unless it is of another version.
          progress.fetched(count === 0 && fetch.turn === 'mine' && fetch.hasMore)
          return fetch
        } catch (error) {
          progress.fetched(false)
          throw error
        }
      },
      load: (chunkIds) => consumer.load(chunkIds),
      finish: (...args) => consumer.finish(...args),
      requeue: (...args) => progress.track('requeue', consumer.requeue(...args)),
      fail: (...args) => progress.track('fail', consumer.fail(...args)),
      forget: (chunkIds) => consumer.forget(chunkIds),
      get heldChunks() {
        return consumer.heldChunks
      },
      close: () => consumer.close(),
    },
  }
}
