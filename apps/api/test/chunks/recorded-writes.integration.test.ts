import { FaultProxy } from '@sluice/harness'
import {
  ChunkQueue,
  encodeChunk,
  FRAME_FIELD,
  queueNames,
  type QueueNames,
  QueueUnavailableError,
  readJob,
} from '@sluice/queue'
import { ownedRows } from '@sluice/row-scanner'
import { packBlocks } from '@sluice/rows'
import { namedRows, namesIn } from '@sluice/rows/testing'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { chunkLimits, ChunkWriter, type RecordedWrite } from '../../src/chunks/chunk-writer.ts'
import { Problem } from '../../src/problems.ts'

const WINDOW_MS = 60_000
const RECORDS_MAX = 1_000
const recordLimits = { windowMs: WINDOW_MS, recordsMax: RECORDS_MAX }

/** The parts of an API process that use the queue. */
interface Process {
  readonly proxy: FaultProxy
  readonly redis: RedisConnection
  readonly queue: ChunkQueue
  readonly writer: ChunkWriter
}

let names: QueueNames
let processes: Process[] = []
/** The same Redis, without a proxy. */
let direct: RedisConnection

beforeEach(() => {
  names = queueNames(`test-recorded-writes-${randomUUID()}`)
  direct = connectRedis(inject('services').redisUrl, { failFast: false })
})

afterEach(async () => {
  for (const { proxy, redis, queue } of processes) {
    proxy.heal()
    await queue.close()
    redis.disconnect()
    await proxy.down()
  }
  processes = []
  await removeJobs()
  direct.disconnect()
})

async function startProcess({ windowMs, recordsMax } = recordLimits): Promise<Process> {
  const { redisUrl } = inject('services')
  const proxy = await FaultProxy.open(redisUrl)
  const redis = connectRedis(proxy.url, { failFast: true, commandTimeoutMs: chunkLimits.addDeadlineMs })
  redis.on('error', () => undefined)
  const queue = new ChunkQueue(redis, names)
  const writer = new ChunkWriter({
    queues: [queue],
    makeId: randomUUID,
    monotonicMs: () => performance.now(),
    records: { windowMs, perProjectMax: recordsMax },
  })
  const started = { proxy, redis, queue, writer }
  processes.push(started)
  await vi.waitUntil(() => queue.isConnected)
  return started
}

const writeOf = (key: string, row: string, project = 'demo'): RecordedWrite => ({
  shard: 0,
  name: names.idempotencyKey(key),
  quota: names.idempotencyQuotaKey(project),
  record: `${row} ${randomUUID()}`,
  rows: ownedRows(1, namedRows(row)),
})

/** The ids of the waiting jobs, oldest first. */
async function waitingIds(): Promise<string[]> {
  return (await direct.lrange(names.waitKey, 0, -1)).toReversed()
}

/** Removes the waiting jobs, as if workers had completed them. */
async function removeJobs(): Promise<void> {
  await direct.del(names.waitKey, ...(await waitingIds()).map((id) => names.jobKey(id)))
}

/** The names of the rows of all waiting chunks, sorted. */
async function queuedRows(): Promise<string[]> {
  const rows: string[] = []
  for (const id of await waitingIds()) {
    const [json, frame = null] = await direct.hmgetBuffer(names.jobKey(id), 'data', FRAME_FIELD)
    const chunk = readJob(id, String(json), frame)
    if (typeof chunk === 'string') throw new Error(`the job ${id} is ${chunk}`)
    rows.push(...namesIn(chunk.frame))
  }
  return rows.toSorted((a, b) => a.localeCompare(b))
}

it('a job of a recorded add has the same fields as a job of a plain add, and wakes a worker', async () => {
  const { queue } = await startProcess()
  const chunk = encodeChunk(packBlocks(namedRows('a')))
  const deadlineMs = performance.now() + 5_000
  await queue.add('plain', chunk, deadlineMs)
  const marker = `${names.queuePrefix}:${names.queue}:marker`
  await direct.del(marker)
  const record = { name: names.idempotencyKey('k'), text: 'r', quota: names.idempotencyQuotaKey('demo') }
  await queue.add('recorded', chunk, deadlineMs, { records: [record], recordLimits })
  const [plain, recorded] = await Promise.all(
    ['plain', 'recorded'].map((id) => direct.hgetall(names.jobKey(id))),
  )
  expect({ ...recorded, opts: JSON.parse(recorded?.['opts'] ?? '') as unknown }).toEqual({
    ...plain,
    opts: { ...(JSON.parse(plain?.['opts'] ?? '') as object), jobId: 'recorded' },
    timestamp: expect.stringMatching(/^\d{13}$/),
  })
  for (const id of ['plain', 'recorded'])
    expect(await direct.hgetBuffer(names.jobKey(id), FRAME_FIELD)).toEqual(chunk.frame)
  expect(await waitingIds()).toEqual(['plain', 'recorded'])
  // What a BullMQ worker waits for.
  expect(await direct.zscore(marker, '0')).toBe('0')
})

describe('a write', () => {
  it('stores the rows and the record', async () => {
    const { writer } = await startProcess()
    const write = writeOf('k', 'a')
    expect(await writer.writeOnce(write)).toBe(write.record)
    expect(await direct.get(write.name)).toBe(write.record)
    const ttlMs = await direct.pttl(write.name)
    expect(ttlMs).toBeGreaterThan(WINDOW_MS - 30_000)
    expect(ttlMs).toBeLessThanOrEqual(WINDOW_MS)
    expect(await queuedRows()).toEqual(['a'])
  })

  it('without rows stores nothing, and finds the record of an earlier write', async () => {
    const { writer } = await startProcess()
    const empty = { ...writeOf('k', ''), rows: ownedRows(0, Buffer.alloc(0)) }
    expect(await writer.writeOnce(empty)).toBe(empty.record)
    expect(await direct.exists(empty.name, empty.quota)).toBe(0)
    const write = writeOf('k', 'a')
    expect(await writer.writeOnce(write)).toBe(write.record)
    expect(await writer.writeOnce(empty)).toBe(write.record)
    expect(await queuedRows()).toEqual(['a'])
  })

  it('gets the record of the first write, even after the rows have left the queue', async () => {
    const { writer } = await startProcess()
    const first = writeOf('k', 'a')
    await writer.writeOnce(first)
    await removeJobs()
    expect(await writer.writeOnce(writeOf('k', 'b'))).toBe(first.record)
    expect(await queuedRows()).toEqual([])
  })

  it('is a first write again when the window is over', async () => {
    const { writer } = await startProcess({ windowMs: 50, recordsMax: RECORDS_MAX })
    await writer.writeOnce(writeOf('k', 'a'))
    await vi.waitUntil(async () => (await direct.exists(names.idempotencyKey('k'))) === 0)
    const again = writeOf('k', 'a')
    expect(await writer.writeOnce(again)).toBe(again.record)
    expect(await queuedRows()).toEqual(['a', 'a'])
  })

  it('is committed together with writes whose records exist already', async () => {
    const { writer } = await startProcess()
    const known = [1, 3].map((i) => writeOf(`k${i}`, `${i}`))
    await Promise.all(known.map((write) => writer.writeOnce(write)))
    const all = [0, 1, 2, 3, 4].map((i) => writeOf(`k${i}`, `${i} again`))
    const held = await Promise.all(all.map((write) => writer.writeOnce(write)))
    expect(held).toEqual(all.map((write, i) => (i % 2 === 1 ? known[(i - 1) / 2] : write)?.record))
    expect(await queuedRows()).toEqual(['0 again', '1', '2 again', '3', '4 again'])
  })
})

it('concurrent writes of many keys are stored once each by two processes', async () => {
  const writers = [await startProcess(), await startProcess()].map(({ writer }) => writer)
  const rounds = Array.from({ length: 6 }, (_, round) =>
    Array.from({ length: 50 }, (_each, i) => ({ key: `k${i}`, write: writeOf(`k${i}`, `${i}`), round })),
  ).flat()
  const held = await Promise.all(
    rounds.map(async ({ key, write, round }) => [key, await writers[round % 2]?.writeOnce(write)] as const),
  )
  const byKey = Map.groupBy(held, ([key]) => key)
  expect(byKey.size).toBe(50)
  for (const each of byKey.values()) expect(new Set(each.map(([, record]) => record)).size).toBe(1)
  expect(await queuedRows()).toHaveLength(50)
})

/** `stored`, `known`, or the time after which the quota has room again. */
const resultOf = async ({ writer }: Process, write: RecordedWrite): Promise<string | number> => {
  try {
    return (await writer.writeOnce(write)) === write.record ? 'stored' : 'known'
  } catch (error) {
    if (error instanceof Problem) return Number(error.headers['retry-after']) * 1_000
    throw error
  }
}

describe('the quota of a project', () => {
  /** The last part of the window is over up to a part later. */
  const WAIT_MAX_MS = WINDOW_MS + WINDOW_MS / 12

  it('is the number of records that all processes store for it', async () => {
    const limits = { windowMs: WINDOW_MS, recordsMax: 10 }
    const [one, other] = [await startProcess(limits), await startProcess(limits)]
    const writes = Array.from({ length: 40 }, (_, i) => writeOf(`k${i}`, `${i}`))
    const results = await Promise.all(writes.map((write, i) => resultOf(i % 2 === 0 ? one : other, write)))
    expect(results.filter((result) => result === 'stored')).toHaveLength(10)
    const stored = await Promise.all(writes.map(({ name }) => direct.exists(name)))
    expect(stored.filter((exists) => exists === 1)).toHaveLength(10)
    expect(await queuedRows()).toHaveLength(10)
    const waits = results.filter((result) => typeof result === 'number')
    expect(waits).toHaveLength(30)
    expect(Math.min(...waits)).toBeGreaterThan(WINDOW_MS - 30_000)
    expect(Math.max(...waits)).toBeLessThanOrEqual(Math.ceil(WAIT_MAX_MS / 1_000) * 1_000)
  })

  it('does not affect other projects, known keys and writes without rows, even in the same commit', async () => {
    const api = await startProcess({ windowMs: WINDOW_MS, recordsMax: 2 })
    await Promise.all(['a', 'b'].map((key) => api.writer.writeOnce(writeOf(key, key))))
    const results = await Promise.all([
      resultOf(api, writeOf('c', 'c')),
      resultOf(api, writeOf('d', 'd', 'other')),
      resultOf(api, writeOf('a', 'again')),
      resultOf(api, { ...writeOf('e', ''), rows: ownedRows(0, Buffer.alloc(0)) }),
      resultOf(api, writeOf('f', 'f', 'other')),
    ])
    expect(results).toEqual([expect.any(Number), 'stored', 'known', 'stored', 'stored'])
    expect(await queuedRows()).toEqual(['a', 'b', 'd', 'f'])
  })

  it('does not count the retry of a commit whose reply was lost', async () => {
    const api = await startProcess({ windowMs: WINDOW_MS, recordsMax: 2 })
    const write = writeOf('a', 'a')
    api.proxy.cutAnswerTo(write.record)
    expect(await resultOf(api, write)).toBe('stored')
    expect(api.proxy.cuts).toBe(1)
    expect(await resultOf(api, writeOf('b', 'b'))).toBe('stored')
    expect(await resultOf(api, writeOf('c', 'c'))).toEqual(expect.any(Number))
  })

  it('has room again after the reported time, and never counts less than the records that exist', async () => {
    const windowMs = 600
    const api = await startProcess({ windowMs, recordsMax: 20 })
    const all: string[] = []
    const waits: number[] = []
    const afterWaits: (string | number)[] = []
    const endMs = performance.now() + 4 * windowMs
    for (let i = 0; performance.now() < endMs; i += 1) {
      const write = writeOf(`k${i}`, `${i}`)
      all.push(write.name)
      const result = await resultOf(api, write)
      if (typeof result === 'number') {
        waits.push(result)
        await sleep(result)
        afterWaits.push(await resultOf(api, write))
      }
      expect(await direct.exists(...all)).toBeLessThanOrEqual(20)
    }
    expect(waits).not.toEqual([])
    expect(afterWaits).toEqual(waits.map(() => 'stored'))
    const ttlMs = await direct.pttl(names.idempotencyQuotaKey('demo'))
    expect(ttlMs).toBeGreaterThan(0)
    expect(ttlMs).toBeLessThanOrEqual(windowMs + windowMs / 12)
  })
})

describe('a connection that is cut between a commit and its reply', () => {
  it('causes a retry that stores nothing if the rows have left the queue by then', async () => {
    const { writer, proxy } = await startProcess()
    const write = writeOf('k', 'a')
    proxy.cutAnswerTo(write.record)
    const written = writer.writeOnce(write)
    await vi.waitUntil(async () => (await waitingIds()).length === 1, { interval: 1 })
    await removeJobs()
    expect(await written).toBe(write.record)
    expect(await queuedRows()).toEqual([])
  })

  it('leaves the record to the next process if the first one dies before its retry', async () => {
    const [dying, next] = [await startProcess(), await startProcess()]
    const write = writeOf('k', 'a')
    dying.proxy.cutAnswerTo(write.record)
    const lost = dying.writer.writeOnce(write).catch(() => 'lost')
    await vi.waitUntil(() => dying.proxy.cuts === 1, { interval: 1 })
    await dying.proxy.down()
    expect(await next.writer.writeOnce(writeOf('k', 'b'))).toBe(write.record)
    expect(await queuedRows()).toEqual(['a'])
    await lost
  })
})

it('stores no record if the job cannot be added', async () => {
  const { writer } = await startProcess()
  // BullMQ's script increments this counter before it changes anything else.
  const counter = `${names.queuePrefix}:${names.queue}:id`
  await direct.set(counter, 'not a number')
  await expect(writer.writeOnce(writeOf('k', 'a'))).rejects.toThrow(QueueUnavailableError)
  expect(await direct.exists(names.idempotencyKey('k'))).toBe(0)
  await direct.del(counter)
  const again = writeOf('k', 'a')
  expect(await writer.writeOnce(again)).toBe(again.record)
  expect(await queuedRows()).toEqual(['a'])
})
