import { setTimeout as delay } from 'node:timers/promises'
import { logsTable } from '@sluice/schema'
import type { System } from '../systems/system.ts'
import { quantile } from './rates.ts'
import type { Store } from './store.ts'

/** 20 a second give some hundred samples in a window, and are nothing beside the load. */
const PROBE_INTERVAL_MS = 50
/** How often ClickHouse is asked what it has, which is the resolution of the figure. */
const POLL_INTERVAL_MS = 10
const ANSWER_DEADLINE_MS = 20_000
/** Probes have times of a range of their own, so that the primary key finds them without reading anything else. */
const EPOCH_MS = Date.UTC(2200, 0, 1)

export interface QueryableTimes {
  /** Probes that were acknowledged, and are rows of their own beside the load's. */
  readonly probes: number
  readonly p50Ms: number | undefined
  readonly p99Ms: number | undefined
}

/**
 * Measures the time from the acknowledgement of an entry until a query finds it: posts single entries that are known by
 * their messages, and polls ClickHouse for them, while other load runs.
 */
export class QueryableProbe {
  readonly #system: System
  readonly #store: Store
  readonly #stopping = new AbortController()
  readonly #ackedAtMs = new Map<number, number>()
  readonly #outstanding = new Set<number>()
  readonly #timesMs: number[] = []
  #sent = 0

  constructor(system: System, store: Store) {
    this.#system = system
    this.#store = store
  }

  /** Probes until it is stopped, and until each probe is found. */
  async run(): Promise<QueryableTimes> {
    await Promise.all([this.#send(), this.#poll()])
    return {
      probes: this.#ackedAtMs.size,
      p50Ms: quantile(this.#timesMs, 0.5),
      p99Ms: quantile(this.#timesMs, 0.99),
    }
  }

  stop(): void {
    this.#stopping.abort()
  }

  async #send(): Promise<void> {
    const posts: Promise<void>[] = []
    while (!this.#stopping.signal.aborted) {
      this.#sent += 1
      posts.push(this.#post(this.#sent))
      await delay(PROBE_INTERVAL_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
    }
    await Promise.all(posts)
  }

  async #post(number: number): Promise<void> {
    const { url, apiKey } = this.#system
    this.#outstanding.add(number)
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          level: 'debug',
          message: `probe ${number}`,
          timestamp: new Date(EPOCH_MS + number).toISOString(),
        }),
        signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
      })
      if (response.status === 202) this.#ackedAtMs.set(number, performance.now())
      else this.#outstanding.delete(number)
      await response.body?.cancel()
    } catch {
      // It was not acknowledged, so nobody promised that it is stored; the load's own figures show such failures.
      this.#outstanding.delete(number)
    }
  }

  async #poll(): Promise<void> {
    let endMs = Infinity
    while (performance.now() < endMs) {
      if (this.#stopping.signal.aborted) {
        if (this.#outstanding.size === 0) return
        endMs = Math.min(endMs, performance.now() + ANSWER_DEADLINE_MS)
      }
      if (this.#outstanding.size > 0) await this.#look()
      await delay(POLL_INTERVAL_MS)
    }
    throw new Error(`${this.#outstanding.size} probes were not found in ClickHouse in time`)
  }

  async #look(): Promise<void> {
    const oldest = new Date(EPOCH_MS + Math.min(...this.#outstanding)).toISOString().slice(0, 23)
    const rows = await this.#store.select<{ message: string }>(
      `SELECT message FROM ${logsTable} WHERE project_id = '${this.#system.projectId}' ` +
        `AND timestamp >= toDateTime64('${oldest.replace('T', ' ')}', 3, 'UTC')`,
    )
    const foundAtMs = performance.now()
    for (const { message } of rows) {
      const number = Number(message.slice('probe '.length))
      const ackedAtMs = this.#ackedAtMs.get(number)
      // One that is found before its acknowledgement came is looked at again, and then counts as found at once.
      if (ackedAtMs === undefined || !this.#outstanding.delete(number)) continue
      this.#timesMs.push(Math.max(0, foundAtMs - ackedAtMs))
    }
  }
}
