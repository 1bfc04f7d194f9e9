import { eventually, postLogs } from '@sluice/harness'
import { audit, type Findings, isClean } from '@sluice/harness/audit'
import { Journal } from '@sluice/harness/journal'
import { type ApiApp, type App, startApi, startWorker, Supervisor, startRedis } from '@sluice/local'
import { type QueueNames, shardNames } from '@sluice/queue'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { type ScaledInstallation, startScaledInstallation } from './scaled-installation.ts'

/** The number of shards before the change. Afterwards there is one. */
const SHARDS = 4

let supervisor: Supervisor
let redisUrl: string

beforeAll(async () => {
  supervisor = await Supervisor.open()
  redisUrl = (await startRedis(supervisor)).url
})

afterAll(() => supervisor?.stop({ force: true }))

/** An installation whose number of shards changes. */
class ShrinkingInstallation {
  readonly names: readonly QueueNames[]
  readonly journal: Journal
  readonly #prefix: string
  readonly #installation: ScaledInstallation
  api: ApiApp
  #worker: App | undefined

  constructor(prefix: string, installation: ScaledInstallation) {
    this.#prefix = prefix
    this.#installation = installation
    this.names = shardNames(prefix, SHARDS)
    this.journal = new Journal(prefix)
    this.api = installation.api
  }

  /** With an API process of 4 shards, and no worker. */
  static async start(prefix: string): Promise<ShrinkingInstallation> {
    const environment = { QUEUE_SHARDS: String(SHARDS) }
    return new ShrinkingInstallation(
      prefix,
      await startScaledInstallation({ supervisor, redisUrl, prefix, workers: 0, environment }),
    )
  }

  /** Sends requests, one after the other, so that each one is a chunk, and the shards take turns. */
  async send(requests: number): Promise<void> {
    for (const number of this.journal.open(requests)) {
      const entry = { level: 'info', message: this.journal.message(number) }
      const { status } = await postLogs({ apiUrl: this.api.url, apiKey: this.#installation.apiKey }, entry)
      this.journal.settle([number], status === 202 ? 'acknowledged' : 'refused')
    }
  }

  async restartApi(shards: number): Promise<void> {
    await this.api.process.stop()
    this.api = await startApi(supervisor, { ...this.#app(shards), name: `${this.#prefix}-api-${shards}` })
  }

  async restartWorker(shards: number): Promise<void> {
    await this.#worker?.process.stop()
    const name = `${this.#prefix}-worker-${shards}`
    const { clickhouse } = this.#installation
    this.#worker = await startWorker(supervisor, { ...this.#app(shards), name, clickhouse })
  }

  #app(shards: number) {
    const environment = { BATCH_WAIT_MS: '100', QUEUE_SHARDS: String(shards) }
    return { redisUrl, prefix: this.#prefix, environment }
  }

  /** The number of chunks that wait in each shard. */
  waiting(): Promise<number[]> {
    return Promise.all(this.names.map(({ waitKey }) => this.#installation.redis.llen(waitKey)))
  }

  /** As the API reports it. */
  async queueDepth(): Promise<number | null> {
    const page = await fetch(`${this.api.opsUrl}/overload`)
    const { signals } = (await page.json()) as { signals: { queue_depth: { value: number | null } } }
    return signals.queue_depth.value
  }

  /** The differences between what was acknowledged and what is stored. */
  async findings(): Promise<Findings> {
    return (await audit(this.#installation.clickhouse, this.journal)).findings
  }

  async stop(): Promise<void> {
    this.#installation.redis.disconnect()
    await this.api.process.stop()
    await this.#worker?.process.stop()
  }
}

async function startShrinking(prefix: string): Promise<ShrinkingInstallation> {
  const installation = await ShrinkingInstallation.start(prefix)
  onTestFinished(() => installation.stop())
  return installation
}

it('chunks of retired shards are counted and stored if the API processes are restarted first', async () => {
  const installation = await startShrinking('api-first')
  await installation.send(3 * SHARDS)
  expect(installation.journal.count('acknowledged')).toBe(3 * SHARDS)
  expect(await installation.waiting()).toEqual([3, 3, 3, 3])
  await installation.restartApi(1)
  await eventually(async () => expect(await installation.queueDepth()).toBe(3 * SHARDS))
  await installation.restartWorker(1)
  await eventually(async () => expect(await installation.findings()).toSatisfy(isClean))
  await eventually(async () => expect(await installation.queueDepth()).toBe(0))
})

it('chunks of retired shards are stored if the workers are restarted first', async () => {
  const installation = await startShrinking('workers-first')
  // The worker finds the other shards when chunks are added to them.
  await installation.restartWorker(1)
  await installation.send(3 * SHARDS)
  await eventually(async () => expect(await installation.findings()).toSatisfy(isClean))
  // This worker finds them in the record.
  await installation.restartWorker(1)
  await installation.send(3 * SHARDS)
  await eventually(async () => expect(await installation.findings()).toSatisfy(isClean))
  expect(installation.journal.count('acknowledged')).toBe(6 * SHARDS)
  await installation.restartApi(1)
  await eventually(async () => expect(await installation.queueDepth()).toBe(0))
})
