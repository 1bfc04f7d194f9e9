import { eventually, postLogs } from '@sluice/harness'
import { audit, isClean } from '@sluice/harness/audit'
import { Journal } from '@sluice/harness/journal'
import { type App, startApi, startWorker, Supervisor, startRedis } from '@sluice/local'
import { shardNames } from '@sluice/queue'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { startScaledInstallation } from './scaled-installation.ts'

/** The number of shards before the change. Afterwards there is one. */
const SHARDS = 4

let supervisor: Supervisor
let redisUrl: string

beforeAll(async () => {
  supervisor = await Supervisor.open()
  redisUrl = (await startRedis(supervisor)).url
})

afterAll(() => supervisor?.stop({ force: true }))

/** Starts an API process of 4 shards, and no worker. Both stop at the end of the test. */
async function startShrinking(prefix: string) {
  const installation = await startScaledInstallation({
    supervisor,
    redisUrl,
    prefix,
    workers: 0,
    environment: { QUEUE_SHARDS: String(SHARDS) },
  })
  const { apiKey, clickhouse, redis } = installation
  const journal = new Journal(prefix)
  let api = installation.api
  let worker: App | undefined
  onTestFinished(async () => {
    redis.disconnect()
    await api.process.stop()
    await worker?.process.stop()
  })
  const appOf = (role: string, shards: number) => {
    const environment = { BATCH_WAIT_MS: '100', QUEUE_SHARDS: String(shards) }
    return { redisUrl, prefix, environment, name: `${prefix}-${role}-${shards}` }
  }
  return {
    journal,
    /** Sends requests, one after the other, so that each one is a chunk, and the shards take turns. */
    send: async (requests: number) => {
      for (const number of journal.open(requests)) {
        const entry = { level: 'info', message: journal.message(number) }
        const { status } = await postLogs({ apiUrl: api.url, apiKey }, entry)
        journal.settle([number], status === 202 ? 'acknowledged' : 'refused')
      }
    },
    restartApi: async (shards: number) => {
      await api.process.stop()
      api = await startApi(supervisor, appOf('api', shards))
    },
    restartWorker: async (shards: number) => {
      await worker?.process.stop()
      worker = await startWorker(supervisor, { ...appOf('worker', shards), clickhouse })
    },
    /** The number of chunks that wait in each shard. */
    waiting: () => Promise.all(shardNames(prefix, SHARDS).map(({ waitKey }) => redis.llen(waitKey))),
    expectDepth: (depth: number) =>
      eventually(async () => {
        const page = await fetch(`${api.opsUrl}/overload`)
        expect(await page.json()).toMatchObject({ signals: { queue_depth: { value: depth } } })
      }),
    expectStored: () =>
      eventually(async () => expect((await audit(clickhouse, journal)).findings).toSatisfy(isClean)),
  }
}

it('chunks of retired shards are counted and stored if the API processes are restarted first', async () => {
  const { send, journal, waiting, restartApi, restartWorker, expectDepth, expectStored } =
    await startShrinking('api-first')
  await send(3 * SHARDS)
  expect(journal.count('acknowledged')).toBe(3 * SHARDS)
  expect(await waiting()).toEqual([3, 3, 3, 3])
  await restartApi(1)
  await expectDepth(3 * SHARDS)
  await restartWorker(1)
  await expectStored()
  await expectDepth(0)
})

it('chunks of retired shards are stored if the workers are restarted first', async () => {
  const { send, journal, restartApi, restartWorker, expectDepth, expectStored } =
    await startShrinking('workers-first')
  // The worker finds the other shards when chunks are added to them.
  await restartWorker(1)
  await send(3 * SHARDS)
  await expectStored()
  // This worker finds them in the record.
  await restartWorker(1)
  await send(3 * SHARDS)
  await expectStored()
  expect(journal.count('acknowledged')).toBe(6 * SHARDS)
  await restartApi(1)
  await expectDepth(0)
})
