import { pause } from '@sluice/harness'
import type { TestServer } from '../scaling/redis-servers.ts'

/** Redis servers with replicas, and what can happen to them. */
export interface RedisGroup {
  /** For the processes of Sluice. */
  readonly url: string
  /** Each ends when another server has taken over, and the former one runs again. */
  readonly faults: Readonly<Record<string, () => Promise<void>>>
  /** Each ends when the replica runs again. */
  readonly replicaFaults: Readonly<Record<'kill' | 'freeze', (forMs: number) => Promise<void>>>
  /** Resolves when all replicas have everything that their primaries have. */
  formed(): Promise<void>
}

/** @param findReplica a replica of the group, chosen for each fault */
export function replicaFaultsOf(findReplica: () => Promise<TestServer>): RedisGroup['replicaFaults'] {
  return {
    kill: async (forMs) => {
      const { process } = await findReplica()
      await process.stop({ signal: 'SIGKILL' })
      await pause(forMs)
      await process.start()
    },
    // It does not reply for a while: it lags.
    freeze: async (forMs) => {
      const { process } = await findReplica()
      process.kill('SIGSTOP')
      await pause(forMs)
      process.kill('SIGCONT')
    },
  }
}
