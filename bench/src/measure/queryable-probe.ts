import { setTimeout as delay } from 'node:timers/promises'
import { logsTable } from '@sluice/clickhouse'
import { bodyOf, contentTypes } from '../load/request-pool.ts'
import type { BodyFormat } from '../load/scenarios.ts'
import { isAccepted } from '../load/tally.ts'
import type { System } from '../systems.ts'
import { DurationHistogram } from './duration-histogram.ts'
import type { Store } from './store.ts'

/** 20 probes a second give some hundred samples per window and are negligible compared to the load. */
const PROBE_INTERVAL_MS = 50
/** Interval of the queries for probes: the resolution of the figure. */
const POLL_INTERVAL_MS = 10
const ANSWER_DEADLINE_MS = 20_000
/** Probes have timestamps far from all other entries, so the primary key finds them without reading other rows. */
const EPOCH_MS = Date.UTC(2100, 0, 1)

type ProbedSystem = Pick<System, 'url' | 'apiKey' | 'projectId'> & { readonly format?: BodyFormat }

export interface QueryableTimes {
  /** The number of acknowledged probes. Each is a row in addition to the rows of the load. */
  readonly probes: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/**
 * Measures the time from the acknowledgement of an entry until a query finds it, while other load runs: sends single
 * entries with unique messages, and polls ClickHouse for them.
 */
export class QueryableProbe {
  readonly #system: ProbedSystem
  readonly #store: Store
  readonly #stopping = new AbortController()
  readonly #ackedAtMs = new Map<number, number>()
  readonly #outstanding = new Set<number>()
  readonly #times = new DurationHistogram()
  #sent = 0

  constructor(system: ProbedSystem, store: Store) {
    this.#system = system
    this.#store = store
  }

  /** Resolves after `stop`, when every acknowledged probe was found. */
  async run(): Promise<QueryableTimes> {
    await Promise.all([this.#send(), this.#poll()])
    return {
      probes: this.#ackedAtMs.size,
      p50Ms: this.#times.percentileMs(50),
      p99Ms: this.#times.percentileMs(99),
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
    const { url, apiKey, format = 'json' } = this.#system
    const timestamp = new Date(EPOCH_MS + number).toISOString()
    this.#outstanding.add(number)
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': contentTypes[format] },
        body: bodyOf([{ level: 'debug', message: `probe ${number}`, timestamp }], format),
        signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
      })
      if (isAccepted(response.status)) this.#ackedAtMs.set(number, performance.now())
      else this.#outstanding.delete(number)
      await response.body?.cancel()
    } catch {
      // Without an acknowledgement the probe need not be stored. The figures of the load show such failures.
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
      if (this.#outstanding.size > 0) await this.#findProbes()
      await delay(POLL_INTERVAL_MS)
    }
    throw new Error(`${this.#outstanding.size} probes were not found in ClickHouse before the deadline`)
  }

  async #findProbes(): Promise<void> {
    const oldest = new Date(EPOCH_MS + Math.min(...this.#outstanding)).toISOString().slice(0, 23)
    const rows = await this.#store.select<{ message: string }>(
      `SELECT message FROM ${logsTable} WHERE project_id = '${this.#system.projectId}' ` +
        `AND timestamp >= toDateTime64('${oldest.replace('T', ' ')}', 3, 'UTC')`,
    )
    const foundAtMs = performance.now()
    for (const { message } of rows) {
      const number = Number(message.slice('probe '.length))
      const ackedAtMs = this.#ackedAtMs.get(number)
      // A probe that is found before its acknowledgement arrives is found again by a later query, with a time near 0.
      if (ackedAtMs === undefined || !this.#outstanding.delete(number)) continue
      this.#times.record(foundAtMs - ackedAtMs)
    }
  }
}
