import { eventually, postLogs } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'
import { drainQueue, isEmpty } from '@sluice/harness/drain'
import { startRedis, Supervisor } from '@sluice/local'
import { batchLedger, type QueueNames, shardNames } from '@sluice/queue'
import { plainRedis } from '@sluice/runtime'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ScaledInstallation, startScaledInstallation } from './scaling/scaled-installation.ts'
import { runSluice } from './sluice-command.ts'

const PREFIX = 'failed-chunks'
const DEADLINE_MS = 20_000

let supervisor: Supervisor
let redisUrl: string
let installation: ScaledInstallation
let first: QueueNames
let second: QueueNames

/** A job as Redis stores it. */
type Job = readonly [names: QueueNames, id: string, content: Buffer]

beforeAll(async () => {
  supervisor = new Supervisor()
  redisUrl = (await startRedis(supervisor)).url
  const environment = { QUEUE_SHARDS: '2' }
  installation = await startScaledInstallation({
    supervisor,
    redisUrl,
    prefix: PREFIX,
    workers: 1,
    environment,
  })
  const [a, b] = shardNames(PREFIX, 2)
  if (a === undefined || b === undefined) throw new Error('there are two shards')
  ;[first, second] = [a, b]
})

afterAll(async () => {
  installation?.redis.disconnect()
  await supervisor?.stop({ force: true })
})

const failedChunks = (...args: string[]): ReturnType<typeof runSluice> =>
  runSluice(['failed-chunks', ...args], { REDIS_URL: redisUrl, SLUICE_PREFIX: PREFIX })

async function list(): Promise<Record<string, unknown>[]> {
  const { stdout } = await failedChunks('list', '--json')
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** Sends an entry, which becomes a chunk of its shard. @returns the job */
async function send(message: string, names: QueueNames): Promise<Job> {
  expect((await postLogs(installation, { level: 'info', message })).status).toBe(202)
  const id = (await installation.redis.lindex(names.waitKey, 0)) ?? ''
  return [names, id, await installation.redis.dumpBuffer(names.jobKey(id))]
}

/** How often each message is stored. */
async function stored(): Promise<Record<string, number>> {
  const query = 'SELECT message, toUInt32(count()) AS n FROM logs GROUP BY message ORDER BY message'
  const rows = await select<{ message: string; n: number }>(installation.clickhouse, query)
  return Object.fromEntries(rows.map(({ message, n }) => [message, n]))
}

const failedInOverload = async (): Promise<number> => {
  const page = await fetch(`${installation.api.opsUrl}/overload`)
  return ((await page.json()) as { queue: { failed: number } }).queue.failed
}

it('failed chunks are listed, counted, retried and removed, and their rows are stored once', async () => {
  const { redis } = installation
  await send('intact', first)
  const partner = await send('partner', second)
  const damaged = await send('damaged', first)
  const deleted = await send('deleted', second)
  await redis.hset(first.jobKey(damaged[1]), 'data', '{"v":')
  // An operator deletes a chunk of a batch whose worker has died.
  await batchLedger(plainRedis(redis), second).claim('a-batch', [partner[1], deleted[1]])
  await redis.del(second.jobKey(deleted[1]))
  await redis.lrem(second.waitKey, 0, deleted[1])
  await installation.startWorkers()

  await eventually(async () => expect(await list()).toHaveLength(2))
  const chunks = await list()
  expect(chunks.find(({ id }) => id === damaged[1])).toEqual({
    id: damaged[1],
    shard: 0,
    failedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    reason: 'the data of the job is damaged',
    rows: null,
    batchId: null,
  })
  expect(chunks.find(({ id }) => id === partner[1])).toMatchObject({
    shard: 1,
    reason: 'the queue does not have all chunks of batch a-batch',
    rows: 1,
    batchId: 'a-batch',
  })
  await eventually(async () => expect(await failedInOverload()).toBe(2))

  // The operator restores the deleted chunk, and retries.
  await restore(deleted)
  expect(await failedChunks('retry', '--all')).toEqual({
    stdout: '1 requeued, 0 stored already.\n',
    stderr: `${damaged[1]} is damaged and cannot be retried\n`,
    code: 1,
  })
  await eventually(async () => {
    expect(await stored()).toEqual({ deleted: 1, intact: 1, partner: 1 })
  })
  await redis.rpush(second.waitKey, deleted[1])
  expect(await failedChunks('purge', damaged[1])).toEqual({ stdout: '1 removed.\n', stderr: '', code: 0 })
  await expectNoJobs()
  await eventually(async () => expect(await failedInOverload()).toBe(0))
}, 90_000)

async function restore([names, id, content]: Job): Promise<void> {
  await installation.redis.restore(names.jobKey(id), 0, content)
}

async function expectNoJobs(): Promise<void> {
  for (const names of [first, second])
    expect(await drainQueue(redisUrl, names, DEADLINE_MS)).toSatisfy(isEmpty)
}
