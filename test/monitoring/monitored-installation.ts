import { pause, postLogs } from '@sluice/harness'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { randomBytes } from 'node:crypto'
import { quickRules, readRules } from './alert-rules.ts'
import { PrometheusServer } from './prometheus-server.ts'

export const JOB = 'sluice'
const ENTRIES_PER_REQUEST = 50
const SEND_INTERVAL_MS = 50
/** Short: entries are sent meanwhile in vain while Redis or ClickHouse is frozen. */
const READ_DEADLINE_MS = 500

/** An installation that a Prometheus scrapes, with the rules of deploy/prometheus and short times. */
export class MonitoredInstallation {
  readonly installation: Installation
  readonly prometheus: PrometheusServer
  readonly #stopping = new AbortController()
  readonly #sending: Promise<void>

  private constructor(installation: Installation, prometheus: PrometheusServer) {
    this.installation = installation
    this.prometheus = prometheus
    this.#sending = this.#send()
  }

  /** Starts it under load. */
  static async start(): Promise<MonitoredInstallation> {
    const installation = await startTestInstallation({ query: {} })
    try {
      const prometheus = await PrometheusServer.start({
        rules: quickRules(await readRules()),
        job: JOB,
        targets: Object.values(installation.opsUrls),
      })
      return new MonitoredInstallation(installation, prometheus)
    } catch (error) {
      await installation.stop({ force: true })
      throw error
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#sending
    await this.prometheus.stop()
    await this.installation.stop({ force: true })
  }

  /** Sends and reads until the stop, whatever the responses are. */
  async #send(): Promise<void> {
    const inFlight = new Set<Promise<void>>()
    while (!this.#stopping.signal.aborted) {
      // They cannot be compressed.
      const logs = Array.from({ length: ENTRIES_PER_REQUEST }, () => ({
        level: 'info',
        message: randomBytes(100).toString('hex'),
      }))
      const posting = postLogs(this.installation, { logs })
        .then(
          () => undefined,
          () => undefined,
        )
        .finally(() => inFlight.delete(posting))
      inFlight.add(posting)
      await this.#read().catch(() => undefined)
      await pause(SEND_INTERVAL_MS, this.#stopping.signal)
    }
    await Promise.all(inFlight)
  }

  async #read(): Promise<void> {
    const { queryUrl, readKey } = this.installation
    const response = await fetch(`${queryUrl}/v1/query/logs?limit=1`, {
      headers: { authorization: `Bearer ${readKey}` },
      signal: AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(READ_DEADLINE_MS)]),
    })
    await response.body?.cancel()
  }
}
