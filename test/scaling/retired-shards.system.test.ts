import { eventually, postLogs } from '@sluice/harness'
import { audit, isClean } from '@sluice/harness/audit'
import { Journal } from '@sluice/harness/journal'
import { startApi, startWorker, Supervisor, startRedis } from '@sluice/local'
import { shardNames } from '@sluice/queue'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { startScaledInstallation } from './scaled-installation.ts'

/** The number of shards before the change. Afterwards there is one. */
const SHARDS = 4

let supervisor: Supervisor
let redisUrl: string

beforeAll(async () => {
  supervisor = new Supervisor()
  redisUrl = (await startRedis(supervisor)).url
})

afterAll(() => supervisor?.stop({ force: true }))

it('chunks of retired shards are stored and counted, although an API process still adds to them', async () => {
  const prefix = 'retired'
  const environment = { QUEUE_SHARDS: String(SHARDS) }
  const installation = await startScaledInstallation({
    supervisor,
    redisUrl,
    prefix,
    workers: 0,
    environment,
  })
  const { api, clickhouse, redis } = installation
  onTestFinished(() => redis.disconnect())
  const journal = new Journal(prefix)
  const oneShard = (name: string) => ({
    redisUrl,
    prefix,
    name,
    environment: { BATCH_WAIT_MS: '100', QUEUE_SHARDS: '1' },
  })
  /** Sends requests, one after the other, so that each one is a chunk, and the shards take turns. */
  const send = async (): Promise<void> => {
    for (const number of journal.open(3 * SHARDS)) {
      const { status } = await postLogs(installation, { level: 'info', message: journal.message(number) })
      journal.settle([number], status === 202 ? 'acknowledged' : 'refused')
    }
  }
  const expectStored = (): Promise<void> =>
    eventually(async () => expect((await audit(clickhouse, journal)).findings).toSatisfy(isClean))
  // The worker finds the other shards when chunks are added to them.
  const worker = await startWorker(supervisor, { ...oneShard('worker-1'), clickhouse })
  await send()
  await expectStored()
  await worker.process.stop()
  await send()
  const waiting = await Promise.all(shardNames(prefix, SHARDS).map(({ waitKey }) => redis.llen(waitKey)))
  expect(waiting).toEqual([3, 3, 3, 3])
  await api.process.stop()
  const after = await startApi(supervisor, oneShard('api-2'))
  const expectDepth = (depth: number): Promise<void> =>
    eventually(async () => {
      const page = await fetch(`${after.opsUrl}/overload`)
      expect(await page.json()).toMatchObject({ signals: { queue_depth: { value: depth } } })
    })
  await expectDepth(3 * SHARDS)
  // This worker finds them in the record.
  await startWorker(supervisor, { ...oneShard('worker-2'), clickhouse })
  await expectStored()
  await expectDepth(0)
  expect(journal.count('acknowledged')).toBe(6 * SHARDS)
})
