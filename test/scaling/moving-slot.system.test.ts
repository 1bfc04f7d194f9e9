import { closeRedis } from '@sluice/harness/close-redis'
import { pause } from '@sluice/harness'
import { Supervisor } from '@sluice/local'
import {
  batchLedger,
  chunkConsumer,
  type ChunkConsumer,
  ChunkQueue,
  encodeChunk,
  FetchMonitor,
  queueNames,
} from '@sluice/queue'
import { packBlocks } from '@sluice/rows'
import { namedRows } from '@sluice/rows/testing'
import { connectRedis, createLogger, type RedisConnection, plainRedis } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { SlotMove, startRedisCluster, type TestCluster } from './redis-servers.ts'

// While a slot moves, each of two nodes has some of its keys. Redis would abort a script at the first key that the node does not have.

const ADD_MS = 10_000
/** For how long a slot moves. Meanwhile each operation is sent, and three checks for stalled jobs are made. */
const MOVE_MS = 700
/** Jobs are checked at this interval. */
const LOCK_MS = 200
const BATCH = 'a-batch'
const logger = createLogger('test', 'silent')

let supervisor: Supervisor
let cluster: TestCluster
let redis: RedisConnection
let names: ReturnType<typeof queueNames>
let queue: ChunkQueue
let consumer: ChunkConsumer

beforeAll(async () => {
  supervisor = new Supervisor()
  cluster = await startRedisCluster(supervisor, 2)
})

afterAll(() => supervisor?.stop({ force: true }))

beforeEach(async () => {
  redis = connectRedis(cluster.url, { failFast: false })
  redis.on('error', () => undefined)
  names = queueNames(`moving-${randomUUID()}`)
  queue = new ChunkQueue(redis, names)
  consumer = openConsumer(60_000)
  for (const id of ['one', 'two', 'three', 'four'])
    await queue.add(id, encodeChunk(packBlocks(namedRows('row'))), performance.now() + ADD_MS)
  await consumer.fetch(3, { isBusy: false })
  await batchLedger(plainRedis(redis), names).claim(BATCH, ['one', 'two'])
  // As after a check for stalled jobs.
  await redis.sadd(names.jobKey('stalled'), 'one', 'two', 'three')
})

afterEach(async () => {
  await consumer.close()
  await queue.close()
  await closeRedis(redis)
})

function openConsumer(lockDurationMs: number): ChunkConsumer {
  const fetchMonitor = new FetchMonitor(() => performance.now())
  return chunkConsumer({ redis, names, workerId: randomUUID(), lockDurationMs, logger, fetchMonitor })
}

/** Begins to move the slot of the queue. These keys stay where they are, and all others are moved. */
async function beginMove(move: SlotMove, staying: readonly string[]): Promise<void> {
  await move.begin()
  await move.migrate((await move.keysOn(move.source)).filter((key) => !staying.includes(key)))
}

async function endMove(move: SlotMove): Promise<void> {
  await move.migrate()
  await move.end()
}

async function checkStalled(): Promise<void> {
  const checking = openConsumer(LOCK_MS)
  await pause(2 * MOVE_MS)
  await checking.close()
}

const batch = { id: BATCH, members: ['one', 'two'], rows: { inserted: 2, deadLettered: 0 } }
const operations: Readonly<Record<string, { run: () => Promise<unknown>; given: () => readonly string[] }>> =
  {
    'a fetch': { run: () => consumer.fetch(1, { isBusy: false }), given: () => [names.turnKey] },
    'a requeue': { run: () => consumer.requeue(['three'], 'front'), given: () => [names.waitKey] },
    'a failure': { run: () => consumer.fail('three', new Error('x')), given: () => [names.waitKey] },
    'a confirmation': {
      run: () => consumer.finish(batch, 0),
      given: () => [
        names.batchKey(BATCH),
        names.totalsKey,
        ...['one', 'two'].flatMap((id) => [names.chunkKey(id), names.jobKey(id)]),
      ],
    },
    'a check for stalled jobs': { run: checkStalled, given: () => [names.waitKey, names.activeKey] },
  }

it.each(Object.entries(operations))(
  '%s waits while the slot moves, and changes nothing',
  async (_name, { run, given }) => {
    const move = await SlotMove.of(cluster, names.waitKey)
    const before = new Set(await move.keysOn(move.source))
    await beginMove(move, given())
    const running = run()
    await pause(MOVE_MS)
    const now = [...(await move.keysOn(move.source)), ...(await move.keysOn(move.target))]
    expect(now).toHaveLength(before.size)
    expect(new Set(now)).toEqual(before)
    await endMove(move)
    await running
  },
)

it('a queue whose slot has moved is delivered', async () => {
  const move = await SlotMove.of(cluster, names.waitKey)
  await beginMove(move, [names.waitKey])
  await endMove(move)
  expect(await consumer.finish(batch, 0)).toBe(true)
  const fetch = await consumer.fetch(1, { isBusy: false })
  expect(fetch?.chunks.map(({ id }) => id)).toEqual(['four'])
  await consumer.requeue(['three', 'four'], 'front')
  expect(await redis.lrange(names.waitKey, 0, -1)).toHaveLength(2)
})
