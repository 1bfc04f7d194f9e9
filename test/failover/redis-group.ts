import { pause } from '@sluice/harness'
import type { TestServer } from '../scaling/redis-servers.ts'

/** Redis servers with replicas, and what can happen to them. */
export interface RedisGroup {
  readonly url: string
  /** Each ends when another server has taken over, and the former one runs again. */
  readonly faults: Readonly<Record<string, () => Promise<void>>>
  /** Each ends when the replica runs again. */
  readonly replicaFaults: Readonly<Record<'kill' | 'freeze', (forMs: number) => Promise<void>>>
  /** Resolves when all replicas have everything that their primaries have. */
  formed(): Promise<void>
}

/** Kills a server, and starts it again after something. */
export async function whileDead({ process }: TestServer, until: () => Promise<unknown>): Promise<void> {
  await process.stop({ signal: 'SIGKILL' })
  await until()
  await process.start()
}

/** A server that is frozen for a while lags. */
export async function whileFrozen({ process }: TestServer, until: () => Promise<unknown>): Promise<void> {
  process.kill('SIGSTOP')
  await until()
  process.kill('SIGCONT')
}

/** @param find a replica of the group, chosen for each fault */
export function replicaFaultsOf(find: () => Promise<TestServer>): RedisGroup['replicaFaults'] {
  return {
    kill: async (forMs) => whileDead(await find(), () => pause(forMs)),
    freeze: async (forMs) => whileFrozen(await find(), () => pause(forMs)),
  }
}

export function serverOn(port: number, servers: readonly TestServer[]): TestServer {
  const server = servers.find((each) => each.port === port)
  if (server === undefined) throw new Error(`the group has no server on ${port}`)
  return server
}
