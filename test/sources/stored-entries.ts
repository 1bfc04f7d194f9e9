import { type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'
import { eventually } from '@sluice/harness'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'

/** An entry as it is stored. */
export interface StoredEntry {
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

export interface Counts {
  readonly rows: number
  readonly distinct: number
}

const QUERY_DEADLINE_MS = 10_000

/** An installation whose stored entries a test reads. */
export class SourcesInstallation {
  readonly installation: Installation
  readonly #clickhouse: ClickHouseClient

  private constructor(installation: Installation) {
    this.installation = installation
    this.#clickhouse = connectClickHouse(installation.clickhouse, {
      requestTimeoutMs: QUERY_DEADLINE_MS,
      connectionsMax: 2,
    })
  }

  static async start(): Promise<SourcesInstallation> {
    return new SourcesInstallation(await startTestInstallation())
  }

  /** Waits for as many entries with this service, and returns them by time. */
  async entriesOf(service: string, count: number): Promise<StoredEntry[]> {
    return eventually(async () => {
      const result = await this.#clickhouse.query({
        query:
          'SELECT level, message, toString(timestamp) AS timestamp, service, environment, source, stack, metadata_text FROM logs ' +
          'WHERE service = {service: String} ORDER BY timestamp, message',
        query_params: { service },
        format: 'JSONEachRow',
      })
      const rows = await result.json<StoredEntry & { metadata_text: string }>()
      if (rows.length < count) throw new Error(`${rows.length} of ${count} entries of ${service} are stored`)
      return rows.map(({ metadata_text: text, ...row }) =>
        Object.assign(row, { metadata: JSON.parse(text) as Record<string, unknown> }),
      )
    })
  }

  /** How many entries of a service are stored, and how many different ones, when there are at least this many different ones. */
  async countsOf(service: string, distinctMin: number): Promise<Counts> {
    return eventually(async () => {
      const result = await this.#clickhouse.query({
        query:
          'SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(message)) AS distinct FROM logs WHERE service = {service: String}',
        query_params: { service },
        format: 'JSONEachRow',
      })
      const [counts = { rows: 0, distinct: 0 }] = await result.json<Counts>()
      if (counts.distinct < distinctMin)
        throw new Error(`${counts.distinct} of ${distinctMin} entries of ${service} are stored`)
      return counts
    })
  }

  /** Kills the API. The worker and the stores continue. */
  async killApi(): Promise<void> {
    await this.installation.processes.api.stop({ signal: 'SIGKILL' })
  }

  async startApi(): Promise<void> {
    await this.installation.processes.api.start()
  }

  async stop(): Promise<void> {
    await this.#clickhouse.close()
    await this.installation.stop({ force: true })
  }
}
