import { pause, postLogs } from '@sluice/harness'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation, InstallationOptions } from '@sluice/local'
import { ChunkQueue, encodeChunk, queueNames } from '@sluice/queue'
import { IdSource, makeRowPrefix, shapeRow } from '@sluice/rows'
import { connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { quickRules, readRules } from './alert-rules.ts'
import { PrometheusServer } from './prometheus-server.ts'

export const JOB = 'sluice'
const ADD_DEADLINE_MS = 5_000

export interface SenderOptions {
  readonly requestsPerS: number
  readonly entriesPerRequest: number
  /** Characters of each message. They cannot be compressed. */
  readonly messageChars: number
  /** Default: the first API process. */
  readonly apiUrl?: string
}

/** Sends until it is stopped, whatever the responses are. */
export interface Sender {
  stop(): Promise<void>
}

/** An installation that a Prometheus scrapes, with the rules of deploy/prometheus and short times. */
export class MonitoredInstallation {
  readonly installation: Installation
  readonly prometheus: PrometheusServer
  readonly redis: RedisConnection
  readonly #queue: ChunkQueue

  private constructor(installation: Installation, prometheus: PrometheusServer) {
    this.installation = installation
    this.prometheus = prometheus
    this.redis = connectRedis(installation.redisUrl, { failFast: false })
    this.redis.on('error', () => undefined)
    this.#queue = new ChunkQueue(this.redis, queueNames(installation.prefix), createLogger('test', 'silent'))
  }

  static async start(
    options: Pick<InstallationOptions, 'api' | 'worker'> & { redis?: { memoryBytesMax: number } } = {},
  ): Promise<MonitoredInstallation> {
    const installation = await startTestInstallation(options)
    try {
      const prometheus = await PrometheusServer.start({ rules: quickRules(await readRules()), job: JOB })
      await prometheus.scrape(installation.opsUrls.api, installation.opsUrls.worker)
      return new MonitoredInstallation(installation, prometheus)
    } catch (error) {
      await installation.stop({ force: true })
      throw error
    }
  }

  async stop(): Promise<void> {
    await this.#queue.close()
    this.redis.disconnect()
    await this.prometheus.stop()
    await this.installation.stop({ force: true })
  }

  send({ requestsPerS, entriesPerRequest, messageChars, apiUrl }: SenderOptions): Sender {
    const stopping = new AbortController()
    const target = { apiUrl: apiUrl ?? this.installation.apiUrl, apiKey: this.installation.apiKey }
    const inFlight = new Set<Promise<void>>()
    const run = async (): Promise<void> => {
      while (!stopping.signal.aborted) {
        const logs = Array.from({ length: entriesPerRequest }, () => ({
          level: 'info',
          message: randomBytes(messageChars).toString('hex').slice(0, messageChars),
        }))
        const posting = postLogs(target, { logs })
          .then(
            () => undefined,
            () => undefined,
          )
          .finally(() => inFlight.delete(posting))
        inFlight.add(posting)
        await pause(1_000 / requestsPerS, stopping.signal)
      }
      await Promise.all(inFlight)
    }
    const running = run()
    return {
      stop: async () => {
        stopping.abort()
        await running
      },
    }
  }

  /** Adds a chunk with one valid row, as an API would have done this long ago. */
  async addOldChunk(ageMs: number): Promise<void> {
    const receivedAtMs = Date.now() - ageMs
    const { projectId } = this.installation
    const prefix = makeRowPrefix({ projectId, retentionDays: 30, receivedAtMs })
    const shaped = shapeRow({ level: 'info', message: 'old' }, randomUUIDv7(), prefix, false)
    if ('error' in shaped) throw new Error(shaped.error.code)
    await this.#addChunk(new IdSource(() => receivedAtMs).next(), [shaped.row])
  }

  /** Adds a chunk with rows that ClickHouse rejects. */
  async addInvalidRows(count: number): Promise<void> {
    await this.#addChunk(
      randomUUIDv7(),
      Array.from({ length: count }, (_, index) => `not a row ${index}\n`),
    )
  }

  async #addChunk(id: string, rows: readonly string[]): Promise<void> {
    const chunk = encodeChunk(rows.length, Buffer.from(rows.join('')))
    await this.#queue.add(id, chunk, performance.now() + ADD_DEADLINE_MS)
  }
}
