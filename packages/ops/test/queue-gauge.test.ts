import { queueNames, type QueueNames, shardNames } from '@sluice/queue'
import { IdSource } from '@sluice/rows'
import { describe, expect, it } from 'vitest'
import { QueueGauge, type QueueReading } from '../src/queue-gauge.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const names = queueNames('test')

/** Shards whose number does not change. */
const fixed = (shards: readonly QueueNames[]) => ({ names: shards, refresh: () => Promise.resolve() })

/** The reading for these ids, newest first, and an INFO text. */
async function read(
  waiting: readonly string[],
  info: string,
  inHand: readonly string[] = [],
  counts: { readonly delayed?: number; readonly failed?: number } = {},
): Promise<QueueReading> {
  const lists = new Map([
    [names.waitKey, waiting],
    [names.activeKey, inHand],
  ])
  const sets = new Map([
    [names.delayedKey, counts.delayed ?? 0],
    [names.failedKey, counts.failed ?? 0],
  ])
  const redis = {
    llen: (key: string) => Promise.resolve(lists.get(key)?.length ?? -1),
    lindex: (key: string, index: number) => Promise.resolve(lists.get(key)?.at(index) ?? null),
    zcard: (key: string) => Promise.resolve(sets.get(key) ?? -1),
    info: () => Promise.resolve(info),
    options: {},
  }
  const gauge = new QueueGauge({
    redis,
    servers: () => [redis],
    shards: fixed([names]),
    memoryBytes: 1_000,
    wallMs: () => NOW_MS,
    monotonicMs: () => 0,
  })
  return gauge.read()
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
  it('is that of the oldest waiting job, by its id', async () => {
    const reading = await read([idOf(10), idOf(500), idOf(61_500)], memory(1, 0, 0))
    expect(reading).toMatchObject({ waiting: 3, inHand: 0, oldestAgeS: 61.5 })
  })

  it('is that of the oldest job in hand if no older job is waiting', async () => {
    const reading = await read([idOf(10)], memory(1, 0, 0), [idOf(20), idOf(7_000)])
    expect(reading).toMatchObject({ waiting: 1, inHand: 2, oldestAgeS: 7 })
  })

  it('is 0 while the queue is empty', async () => {
    expect(await read([], memory(1, 0, 0))).toMatchObject({ waiting: 0, inHand: 0, oldestAgeS: 0 })
  })

  it('is not negative if an id is ahead of the clock', async () => {
    expect(await read([idOf(-5_000)], memory(1, 0, 0))).toMatchObject({ oldestAgeS: 0 })
  })
})

describe('the numbers', () => {
  it('of waiting chunks include delayed ones, which wait for another worker', async () => {
    expect(await read([idOf(10)], memory(1, 0, 0), [], { delayed: 2 })).toMatchObject({
      waiting: 3,
      failed: 0,
    })
  })

  it('of failed chunks are separate', async () => {
    expect(await read([], memory(1, 0, 0), [], { failed: 4 })).toMatchObject({
      waiting: 0,
      inHand: 0,
      failed: 4,
    })
  })
})

describe('the memory', () => {
  it('is a share of `maxmemory`, counted as Redis counts it', async () => {
    expect(await read([], memory(3_500, 500, 6_000))).toMatchObject({ memoryPercent: 50 })
  })

  it('is a share of the configured budget if Redis has no `maxmemory`', async () => {
    expect(await read([], memory(800, 50, 0))).toMatchObject({ memoryPercent: 75 })
  })

  it('is not guessed if Redis does not report it', async () => {
    await expect(read([], '# Memory\r\n')).rejects.toThrow('used_memory')
  })
})

describe('with several shards and servers', () => {
  const shards = shardNames('test', 3)
  const noAnswer = Promise.reject(new Error('no answer'))
  noAnswer.catch(() => undefined)

  /** The waiting ids of each shard, and the INFO text of each server by its port. Undefined: it does not answer. */
  interface State {
    readonly queues: readonly (readonly string[] | undefined)[]
    readonly infos: Readonly<Record<number, string | undefined>>
    readonly monotonicMs?: number
  }

  /** Makes a gauge. @returns a function that reads a given state with it, and one for the failures of the shards */
  const gaugeOf = (): ((state: State) => Promise<QueueReading>) & {
    failures: () => (string | undefined)[]
  } => {
    let state: State = { queues: [], infos: {} }
    const queueOf = (key: string) =>
      shards.some(({ activeKey }) => activeKey === key)
        ? []
        : state.queues[shards.findIndex(({ waitKey }) => waitKey === key)]
    const gauge = new QueueGauge({
      redis: {
        llen: async (key: string) => queueOf(key)?.length ?? noAnswer,
        lindex: async (key: string, index: number) => queueOf(key)?.at(index) ?? null,
        zcard: async (key: string) => (shards.some(({ failedKey }) => failedKey === key) ? 1 : 0),
      },
      servers: () =>
        Object.entries(state.infos).map(([port, info]) => ({
          info: async () => info ?? noAnswer,
          options: { host: 'redis', port: Number(port) },
        })),
      shards: { names: shards, refresh: () => noAnswer },
      memoryBytes: 1_000,
      wallMs: () => NOW_MS,
      monotonicMs: () => state.monotonicMs ?? 0,
    })
    const readNext = (next: State): Promise<QueueReading> => {
      state = next
      return gauge.read()
    }
    return Object.assign(readNext, { failures: () => shards.map((each) => gauge.failureOf(each)) })
  }

  it('the reading has the sum of the jobs, the oldest age and the memory of the fullest server', async () => {
    const reading = await gaugeOf()({
      queues: [[idOf(1_000)], [], [idOf(2_000), idOf(9_000)]],
      infos: { 1: memory(100, 0, 0), 2: memory(900, 0, 0), 3: memory(1_000, 0, 2_000) },
    })
    expect(reading).toMatchObject({ waiting: 3, inHand: 0, oldestAgeS: 9, failed: 3, memoryPercent: 90 })
    expect(reading.shards[2]).toEqual({
      shard: 2,
      waiting: 2,
      delayed: 0,
      inHand: 0,
      failed: 1,
      oldestAgeS: 9,
    })
    expect(reading.servers[1]).toMatchObject({ server: 'redis:2', usedBytes: 900, limitBytes: 1_000 })
  })

  it('shards and servers that have never answered are left out', async () => {
    const reading = await gaugeOf()({
      queues: [undefined, [idOf(1_000)], []],
      infos: { 1: undefined, 2: memory(100, 0, 0) },
    })
    expect(reading).toMatchObject({ waiting: 1, inHand: 0, oldestAgeS: 1, failed: 2, memoryPercent: 10 })
  })

  it('shards and servers that stop answering count with their last reading until they answer again', async () => {
    const readNext = gaugeOf()
    await readNext({
      queues: [[idOf(9_000), idOf(9_000)], [idOf(1_000)], []],
      infos: { 1: memory(900, 0, 0), 2: memory(100, 0, 0) },
    })
    const rest = [[idOf(1_000), idOf(1_000)], []]
    const without = { queues: [undefined, ...rest], infos: { 1: undefined, 2: memory(200, 0, 0) } }
    for (const monotonicMs of [0, 50_000, 100_000]) {
      const { waiting, memoryPercent } = await readNext({ ...without, monotonicMs })
      expect({ waiting, memoryPercent }).toEqual({ waiting: 4, memoryPercent: 90 })
    }
    expect((await readNext(without)).oldestAgeS).toBe(9)
    const recovered = { queues: [[], ...rest], infos: { 1: memory(300, 0, 0), 2: memory(200, 0, 0) } }
    expect(await readNext(recovered)).toMatchObject({
      waiting: 2,
      inHand: 0,
      oldestAgeS: 1,
      failed: 3,
      memoryPercent: 30,
    })
  })

  it('each shard that was not read has its failure, until it is read', async () => {
    const readNext = gaugeOf()
    const infos = { 1: memory(100, 0, 0) }
    expect(readNext.failures()).toEqual([undefined, undefined, undefined])
    await readNext({ queues: [[], undefined, []], infos })
    expect(readNext.failures()).toEqual([undefined, 'no answer', undefined])
    await readNext({ queues: [[], [], []], infos })
    expect(readNext.failures()).toEqual([undefined, undefined, undefined])
  })

  it('a server that left the list of known servers still counts for a minute', async () => {
    const readNext = gaugeOf()
    await readNext({ queues: [[], [], []], infos: { 1: memory(900, 0, 0), 2: memory(100, 0, 0) } })
    const rest = { queues: [[], [], []], infos: { 2: memory(100, 0, 0) } }
    expect((await readNext({ ...rest, monotonicMs: 5_000 })).memoryPercent).toBe(90)
    expect((await readNext({ ...rest, monotonicMs: 61_000 })).memoryPercent).toBe(10)
  })

  it('nothing is guessed if none answers', async () => {
    const readNext = gaugeOf()
    await readNext({ queues: [[], [], []], infos: { 1: memory(1, 0, 0) } })
    const none = [undefined, undefined, undefined]
    await expect(readNext({ queues: none, infos: { 1: memory(1, 0, 0) } })).rejects.toThrow('no answer')
    await expect(readNext({ queues: [[], [], []], infos: { 1: undefined } })).rejects.toThrow('no answer')
    await expect(readNext({ queues: [[], [], []], infos: {} })).rejects.toThrow('no Redis server is known')
  })
})
