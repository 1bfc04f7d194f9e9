import { defineScript, installationNames, type RedisConnection } from '@sluice/runtime'

export const retryLimits = {
  /** Until a worker begins, and afterwards, for those who wait for the result. */
  keptMs: 3_600_000,
  /** A worker reports after each row. Without a report for this long it is dead, and the retry is forgotten: it can be asked for again. */
  silenceMs: 180_000,
} as const

/** Which dead letters: one, or all with a code and a reason. */
export type RetryChoice = { readonly id: string } | { readonly code: string; readonly reason: string }

/** A retry of dead letters: waiting → running (→ waiting, if its worker stops) → done or failed. */
export interface Retry {
  readonly choice: RetryChoice
  readonly state: 'waiting' | 'running' | 'done' | 'failed'
  readonly inserted: number
  readonly rejected: number
  /** Why it failed, or why the last row was rejected again. Never text of a row. */
  readonly reason: string
}

/**
 * KEYS: the retry. ARGV: the choice, how long it is kept in ms. Returns 0 if another choice waits or runs. The same choice again changes nothing.
 */
const ASK = `
local state, choice = unpack(redis.call('HMGET', KEYS[1], 'state', 'choice'))
if state == 'waiting' or state == 'running' then return choice == ARGV[1] and 1 or 0 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'choice', ARGV[1], 'state', 'waiting')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`

/** KEYS: the retry. ARGV: how long it may run without a report in ms. Returns the choice if there is one to be run, otherwise nil. */
const TAKE = `
if redis.call('HGET', KEYS[1], 'state') ~= 'waiting' then return nil end
redis.call('HSET', KEYS[1], 'state', 'running')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return redis.call('HGET', KEYS[1], 'choice')`

/** KEYS: the retry. ARGV: until when it is kept in ms, fields and values. It may be gone. */
const UPDATE = `
if redis.call('EXISTS', KEYS[1]) == 0 then return end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])`

/**
 * How the query process, which can only read, has a worker retry dead letters: one retry at a time, in Redis. If it is lost, the dead letters are
 * still there. If two workers run it, no row is stored twice: see `DeadLetterStore`.
 */
export class RetryRequests {
  readonly #redis: RedisConnection
  readonly #key: string

  constructor(redis: RedisConnection, prefix: string) {
    this.#redis = redis
    this.#key = installationNames(prefix).retryKey
  }

  /** @returns whether it is the retry that waits or runs now */
  async ask(choice: RetryChoice): Promise<boolean> {
    return (await this.#run(ASK, JSON.stringify(choice), retryLimits.keptMs)) === 1
  }

  async read(): Promise<Retry | null> {
    const { choice, state, inserted = 0, rejected = 0, reason = '' } = await this.#redis.hgetall(this.#key)
    if (choice === undefined) return null
    const counts = { inserted: Number(inserted), rejected: Number(rejected) }
    return { choice: JSON.parse(choice) as RetryChoice, state: state as Retry['state'], ...counts, reason }
  }

  /** @returns what the caller is to retry now */
  async take(): Promise<RetryChoice | undefined> {
    const choice = await this.#run(TAKE, retryLimits.silenceMs)
    return typeof choice === 'string' ? (JSON.parse(choice) as RetryChoice) : undefined
  }

  async update(changes: Omit<Retry, 'choice'>): Promise<void> {
    const keptMs = changes.state === 'running' ? retryLimits.silenceMs : retryLimits.keptMs
    await this.#run(UPDATE, keptMs, ...Object.entries(changes).flat())
  }

  #run(lua: string, ...args: readonly (string | number)[]): Promise<unknown> {
    return defineScript(this.#redis, lua)([this.#key], args)
  }
}
