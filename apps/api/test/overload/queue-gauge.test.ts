import { IdSource, redisNames, shardNames } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { QueueGauge, type QueueReading } from '../../src/overload/queue-gauge.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const names = redisNames('test')

/** What the gauge makes of the ids that wait, the newest first, and of an INFO. */
async function read(waiting: readonly string[], info: string): Promise<QueueReading> {
  const keys: string[] = []
  const redis = {
    llen: (key: string) => (keys.push(key), Promise.resolve(waiting.length)),
    lindex: (key: string, index: number) => (keys.push(key), Promise.resolve(waiting.at(index) ?? null)),
    info: () => Promise.resolve(info),
  }
  const gauge = new QueueGauge({
    redis,
    servers: () => [redis],
    shards: [names],
    memoryBytes: 1_000,
    now: () => NOW_MS,
  })
  const reading = await gauge.read()
  expect(keys).toEqual([names.waitKey, names.waitKey])
  return reading
}

const memory = (used: number, uncounted: number, max: number): string =>
  [
    '# Memory',
    `used_memory:${used}`,
    'used_memory_human:1.00M',
    `maxmemory:${max}`,
    'maxmemory_human:0B',
    'maxmemory_policy:noeviction',
    `mem_not_counted_for_evict:${uncounted}`,
    '',
  ].join('\r\n')

const idOf = (ageMs: number): string => new IdSource(() => NOW_MS - ageMs).next()

describe('the age', () => {
  it('is that of the job that waits longest, by its id', async () => {
    const { jobs, oldestAgeS } = await read([idOf(10), idOf(500), idOf(61_500)], memory(1, 0, 0))
    expect({ jobs, oldestAgeS }).toEqual({ jobs: 3, oldestAgeS: 61.5 })
  })

  it('is 0 while nothing waits', async () => {
    expect(await read([], memory(1, 0, 0))).toMatchObject({ jobs: 0, oldestAgeS: 0 })
  })

  it('is not negative where the clock of another process is ahead', async () => {
    expect(await read([idOf(-5_000)], memory(1, 0, 0))).toMatchObject({ oldestAgeS: 0 })
  })
})

describe('the memory', () => {
  it('is a share of what Redis may use at most, as Redis counts it', async () => {
    expect(await read([], memory(3_500, 500, 6_000))).toMatchObject({ memoryPercent: 50 })
  })

  it('is a share of what is configured where Redis has no maximum', async () => {
    expect(await read([], memory(800, 50, 0))).toMatchObject({ memoryPercent: 75 })
  })

  it('is not guessed where Redis does not tell', async () => {
    await expect(read([], '# Memory\r\n')).rejects.toThrow('used_memory')
  })
})

describe('of several shards and servers', () => {
  const shards = shardNames('test', 3)
  const away = Promise.reject(new Error('away'))
  away.catch(() => undefined)

  /** @param queues the ids that wait in each shard; undefined for one that does not answer */
  const readAll = (
    queues: (readonly string[] | undefined)[],
    infos: (string | undefined)[],
  ): Promise<QueueReading> => {
    const queueOf = (key: string) => queues[shards.findIndex(({ waitKey }) => waitKey === key)]
    const gauge = new QueueGauge({
      redis: {
        llen: async (key: string) => queueOf(key)?.length ?? away,
        lindex: async (key: string, index: number) => queueOf(key)?.at(index) ?? null,
      },
      servers: () => infos.map((info) => ({ info: async () => info ?? away })),
      shards,
      memoryBytes: 1_000,
      now: () => NOW_MS,
    })
    return gauge.read()
  }

  it('the jobs are added up, the oldest counts, and the fullest server does', async () => {
    const queues = [[idOf(1_000)], [], [idOf(2_000), idOf(9_000)]]
    const infos = [memory(100, 0, 0), memory(900, 0, 0), memory(1_000, 0, 2_000)]
    expect(await readAll(queues, infos)).toEqual({ jobs: 3, oldestAgeS: 9, memoryPercent: 90 })
  })

  it('those that do not answer are left out', async () => {
    const reading = await readAll([undefined, [idOf(1_000)], []], [undefined, memory(100, 0, 0)])
    expect(reading).toEqual({ jobs: 1, oldestAgeS: 1, memoryPercent: 10 })
  })

  it('nothing is guessed where none answers', async () => {
    await expect(readAll([undefined, undefined, undefined], [memory(1, 0, 0)])).rejects.toThrow('away')
    await expect(readAll([[], [], []], [undefined])).rejects.toThrow('away')
    await expect(readAll([[], [], []], [])).rejects.toThrow('no server')
  })
})
