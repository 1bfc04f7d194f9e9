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
    options: {},
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

  /** What waits in each shard, and the INFO of each server, by its port; undefined for one that does not answer. */
  interface State {
    readonly queues: readonly (readonly string[] | undefined)[]
    readonly infos: Readonly<Record<number, string | undefined>>
    readonly nowMs?: number
  }

  /** A gauge, and how it reads a state. */
  const gaugeOf = (): ((state: State) => Promise<QueueReading>) => {
    let state: State = { queues: [], infos: {} }
    const queueOf = (key: string) => state.queues[shards.findIndex(({ waitKey }) => waitKey === key)]
    const gauge = new QueueGauge({
      redis: {
        llen: async (key: string) => queueOf(key)?.length ?? away,
        lindex: async (key: string, index: number) => queueOf(key)?.at(index) ?? null,
      },
      servers: () =>
        Object.entries(state.infos).map(([port, info]) => ({
          info: async () => info ?? away,
          options: { host: 'redis', port: Number(port) },
        })),
      shards,
      memoryBytes: 1_000,
      now: () => state.nowMs ?? NOW_MS,
    })
    return (next) => {
      state = next
      return gauge.read()
    }
  }

  it('the jobs are added up, the oldest counts, and the fullest server does', async () => {
    const reading = await gaugeOf()({
      queues: [[idOf(1_000)], [], [idOf(2_000), idOf(9_000)]],
      infos: { 1: memory(100, 0, 0), 2: memory(900, 0, 0), 3: memory(1_000, 0, 2_000) },
    })
    expect(reading).toEqual({ jobs: 3, oldestAgeS: 9, memoryPercent: 90 })
  })

  it('those that have never answered are left out', async () => {
    const reading = await gaugeOf()({
      queues: [undefined, [idOf(1_000)], []],
      infos: { 1: undefined, 2: memory(100, 0, 0) },
    })
    expect(reading).toEqual({ jobs: 1, oldestAgeS: 1, memoryPercent: 10 })
  })

  it('those that do not answer any more count as they were, until they do', async () => {
    const readNext = gaugeOf()
    await readNext({
      queues: [[idOf(9_000), idOf(9_000)], [idOf(1_000)], []],
      infos: { 1: memory(900, 0, 0), 2: memory(100, 0, 0) },
    })
    const rest = [[idOf(1_000), idOf(1_000)], []]
    const without = { queues: [undefined, ...rest], infos: { 1: undefined, 2: memory(200, 0, 0) } }
    for (const nowMs of [NOW_MS, NOW_MS + 50_000, NOW_MS + 100_000]) {
      const { jobs, memoryPercent } = await readNext({ ...without, nowMs })
      expect({ jobs, memoryPercent }).toEqual({ jobs: 4, memoryPercent: 90 })
    }
    expect((await readNext(without)).oldestAgeS).toBe(9)
    const back = { queues: [[], ...rest], infos: { 1: memory(300, 0, 0), 2: memory(200, 0, 0) } }
    expect(await readNext(back)).toEqual({ jobs: 2, oldestAgeS: 1, memoryPercent: 30 })
  })

  it('a server that is not known any more is forgotten, but not at once', async () => {
    const readNext = gaugeOf()
    await readNext({ queues: [[], [], []], infos: { 1: memory(900, 0, 0), 2: memory(100, 0, 0) } })
    const rest = { queues: [[], [], []], infos: { 2: memory(100, 0, 0) } }
    expect((await readNext({ ...rest, nowMs: NOW_MS + 5_000 })).memoryPercent).toBe(90)
    expect((await readNext({ ...rest, nowMs: NOW_MS + 61_000 })).memoryPercent).toBe(10)
  })

  it('nothing is guessed where none answers', async () => {
    const readNext = gaugeOf()
    await readNext({ queues: [[], [], []], infos: { 1: memory(1, 0, 0) } })
    const none = [undefined, undefined, undefined]
    await expect(readNext({ queues: none, infos: { 1: memory(1, 0, 0) } })).rejects.toThrow('away')
    await expect(readNext({ queues: [[], [], []], infos: { 1: undefined } })).rejects.toThrow('away')
    await expect(readNext({ queues: [[], [], []], infos: {} })).rejects.toThrow('no server')
  })
})
