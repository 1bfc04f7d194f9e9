import type { RedisConnection } from '@sluice/runtime'

/** Often enough for a state that is shown in seconds. A check only reads memory. */
const CHECK_INTERVAL_MS = 1_000

/** Something outside of the process that it needs. */
export interface DependencyCheck {
  /** For example `redis`, `clickhouse` or `shard 0`. Unique. */
  readonly name: string
  /** Why it does not work, as far as the process knows now; undefined if it works. Makes no remote call. */
  readonly failure: () => string | undefined
}

export interface DependencyStatus {
  readonly name: string
  readonly state: 'up' | 'down'
  /** How long it has been in this state, in whole seconds. */
  readonly seconds: number
  /** The last error, also after it has ended. Without passwords. */
  readonly lastError?: string
}

export interface DependenciesOptions {
  /** May change: a shard is added. */
  readonly checks: () => readonly DependencyCheck[]
  readonly monotonicMs: () => number
}

/**
 * Remembers since when each dependency works or fails.
 *
 * A dependency: up ⇄ down, at the first check that finds it so.
 */
export class Dependencies {
  readonly #options: DependenciesOptions
  #known = new Map<string, { isUp: boolean; sinceMs: number; lastError: string | undefined }>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: DependenciesOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer = setInterval(() => this.check(), CHECK_INTERVAL_MS)
    this.check()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  check(): void {
    const nowMs = this.#options.monotonicMs()
    const known = this.#options.checks().map(({ name, failure }) => {
      const [error, before] = [failure(), this.#known.get(name)]
      const isUp = error === undefined
      const sinceMs = before?.isUp === isUp ? before.sinceMs : nowMs
      return [name, { isUp, sinceMs, lastError: error ?? before?.lastError }] as const
    })
    this.#known = new Map(known)
  }

  /** The present states, in the order of the checks. */
  get status(): DependencyStatus[] {
    this.check()
    const nowMs = this.#options.monotonicMs()
    return Array.from(this.#known, ([name, { isUp, sinceMs, lastError }]) => ({
      name,
      state: isUp ? 'up' : 'down',
      seconds: Math.floor((nowMs - sinceMs) / 1_000),
      ...(lastError === undefined ? {} : { lastError: withoutSecrets(lastError) }),
    }))
  }
}

/** Whether a connection to Redis is open. In a cluster, one open connection is enough: the shards are dependencies of their own. */
export function redisDependency(redis: Pick<RedisConnection, 'status' | 'on'>): DependencyCheck {
  let lastError: string | undefined
  redis.on('error', (error: Error) => (lastError = error.message))
  return {
    name: 'redis',
    failure: () => {
      if (redis.status === 'ready') return undefined
      const state = `the connection to Redis is ${redis.status}`
      return lastError === undefined ? state : `${state}: ${lastError}`
    },
  }
}

/** A message is a hint. Longer ones quote what was sent. */
const LENGTH_MAX = 200

/**
 * A message of an error as operators may see it. Redis quotes the arguments of an unknown command, and `HELLO` has the password. A URL
 * may have credentials.
 */
export function withoutSecrets(message: string): string {
  return message
    .replace(/,? with args beginning with:.*/su, '')
    .replaceAll(/\/\/[^/@\s]*@/gu, '//')
    .slice(0, LENGTH_MAX)
}
