import { type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'
import { eventually } from '@sluice/harness'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { afterAll, beforeAll } from 'vitest'

/** An entry as it is stored. */
export interface StoredEntry {
  readonly id: string
  readonly level: string
  readonly message: string
  /** In UTC. */
  readonly timestamp: string
  readonly service: string
  readonly environment: string
  readonly source: string
  readonly stack: string
  readonly metadata: Readonly<Record<string, unknown>>
}

const QUERY_DEADLINE_MS = 10_000

/** An installation whose stored entries a test reads. */
export class Sources {
  #running: { readonly installation: Installation; readonly clickhouse: ClickHouseClient } | undefined

  /** Starts an installation for the tests of a file or a suite. */
  static use(): Sources {
    const sources = new Sources()
    beforeAll(async () => {
      const installation = await startTestInstallation()
      const options = { requestTimeoutMs: QUERY_DEADLINE_MS, connectionsMax: 2 }
      sources.#running = { installation, clickhouse: connectClickHouse(installation.clickhouse, options) }
    })
    afterAll(async () => {
      await sources.#running?.clickhouse.close()
      await sources.#running?.installation.stop({ force: true })
    })
    return sources
  }

  get #started() {
    if (this.#running === undefined) throw new Error('the installation has not started')
    return this.#running
  }

  get installation(): Installation {
    return this.#started.installation
  }

  /** The environment of the examples. */
  environment(service: string): { SLUICE_API_URL: string; SLUICE_API_KEY: string; SERVICE: string } {
    const { apiUrl, apiKey } = this.installation
    return { SLUICE_API_URL: apiUrl, SLUICE_API_KEY: apiKey, SERVICE: service }
  }

  /** All entries with this service, by time and message. */
  async storedOf(service: string): Promise<StoredEntry[]> {
    const result = await this.#started.clickhouse.query({
      query:
        'SELECT id, level, message, toString(timestamp) AS timestamp, service, environment, source, stack, metadata_text ' +
        'FROM logs WHERE service = {service: String} ORDER BY timestamp, message',
      query_params: { service },
      format: 'JSONEachRow',
    })
    const rows = await result.json<StoredEntry & { metadata_text: string }>()
    return rows.map(({ metadata_text: text, ...row }) =>
      Object.assign(row, { metadata: JSON.parse(text) as Record<string, unknown> }),
    )
  }

  /** Waits until this many different messages of a service are stored. @returns its entries, by time and message */
  async entriesOf(service: string, messages: number): Promise<StoredEntry[]> {
    return eventually(async () => {
      const entries = await this.storedOf(service)
      const { size } = new Set(entries.map(({ message }) => message))
      if (size < messages) throw new Error(`${size} of ${messages} messages of ${service} are stored`)
      return entries
    })
  }

  /** Kills the API. The worker and the stores continue. */
  async killApi(): Promise<void> {
    await this.installation.processes.api.stop({ signal: 'SIGKILL' })
  }

  async startApi(): Promise<void> {
    await this.installation.processes.api.start()
  }
}

/** Messages with a number. */
export const numbered = (first: number, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `number ${first + index}`)
