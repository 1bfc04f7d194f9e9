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
