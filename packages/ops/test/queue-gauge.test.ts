import { shardNames } from '@sluice/queue'
import { IdSource } from '@sluice/rows'
import { expect, it } from 'vitest'
import { QueueGauge, type QueueReading } from '../src/queue-gauge.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const shards = shardNames('test', 3)
const noAnswer = Promise.reject(new Error('no answer'))
noAnswer.catch(() => undefined)

/** What Redis has. */
interface State {
  /** The waiting ids of each shard, newest first. Undefined: it does not reply. */
  readonly queues: readonly (readonly string[] | undefined)[]
  /** The ids that workers hold in the first shard, newest first. */
  readonly held?: readonly string[]
  /** The number of delayed jobs in the first shard. */
  readonly delayed?: number
  /** The INFO of each server, by its port. Undefined: it does not reply. */
  readonly infos: Readonly<Record<number, string | undefined>>
}

/** Makes a gauge of three shards with a failed job each. @returns a function that reads a given state with it */
function makeGauge(): ((state: State) => Promise<QueueReading>) & { failures: () => (string | undefined)[] } {
  let state: State = { queues: [], infos: {} }
  const listAt = (key: string): readonly string[] | undefined => {
    if (key === shards[0]?.activeKey) return state.held ?? []
    const shard = shards.findIndex(({ waitKey }) => waitKey === key)
    return shard === -1 ? [] : state.queues[shard]
  }
  const gauge = new QueueGauge({
    redis: {
      llen: async (key: string) => listAt(key)?.length ?? noAnswer,
      lindex: async (key: string, index: number) => listAt(key)?.at(index) ?? null,
      hgetall: async () => ({ added: '3' }),
      zcard: async (key: string) => {
        if (shards.some(({ failedKey }) => failedKey === key)) return 1
        return key === shards[0]?.delayedKey ? (state.delayed ?? 0) : 0
      },
    },
    servers: () =>
      Object.entries(state.infos).map(([port, info]) => ({
        info: async () => info ?? noAnswer,
        options: { host: 'redis', port: Number(port) },
      })),
    shards: { names: shards, refresh: () => noAnswer },
    memoryBytes: 1_000,
    wallMs: () => NOW_MS,
  })
  const readNext = (next: State): Promise<QueueReading> => {
    state = next
    return gauge.read()
  }
  return Object.assign(readNext, { failures: () => shards.map((each) => gauge.failureOf(each)) })
}

const memory = (used: number, uncounted: number, max: number): string =>
  `# Memory\r\nused_memory:${used}\r\nused_memory_human:1.00M\r\nmaxmemory:${max}\r\nmem_not_counted_for_evict:${uncounted}\r\n`

const idOf = (ageMs: number): string => new IdSource(() => NOW_MS - ageMs).next()

const NOTHING = [[], [], []]

it.each([
  ['of the oldest waiting chunk', [10, 500, 61_500], [], 61.5],
  ['of the oldest held chunk if no older one is waiting', [10], [20, 7_000], 7],
  ['0 if an id is ahead of the clock', [-5_000], [], 0],
])('has the age %s', async (_which, waiting, held, oldestAgeS) => {
  const queues = [waiting.map(idOf), [], []]
  // Delayed chunks wait for another worker.
  const state = { queues, held: held.map(idOf), delayed: 2, infos: { 1: memory(1, 0, 0) } }
  const expected = { waiting: waiting.length + 2, inHand: held.length, oldestAgeS, failed: 3 }
  expect(await makeGauge()(state)).toMatchObject(expected)
})

it.each([
  ['`maxmemory`, counted as Redis counts it', memory(3_500, 500, 6_000), 50],
  ['the configured budget if Redis has no `maxmemory`', memory(800, 50, 0), 75],
])('has the memory as a share of %s', async (_what, info, memoryPercent) => {
  expect(await makeGauge()({ queues: NOTHING, infos: { 1: info } })).toMatchObject({ memoryPercent })
})

it('has the sum of the jobs, the oldest age and the memory of the fullest server', async () => {
  const reading = await makeGauge()({
    queues: [[idOf(1_000)], [], [idOf(2_000), idOf(9_000)]],
    infos: { 1: memory(100, 0, 0), 2: memory(900, 0, 0), 3: memory(1_000, 0, 2_000) },
  })
  expect(reading).toMatchObject({ waiting: 3, inHand: 0, oldestAgeS: 9, failed: 3, memoryPercent: 90 })
  expect(reading.shards[2]).toMatchObject({ shard: 2, waiting: 2, failed: 1, oldestAgeS: 9 })
  expect(reading.servers[1]).toMatchObject({ server: 'redis:2', usedBytes: 900, limitBytes: 1_000 })
})

it('leaves out shards and servers that have never replied, and has the failure of each shard until it is read', async () => {
  const readNext = makeGauge()
  const queues = [undefined, [idOf(1_000)], []]
  const reading = await readNext({ queues, infos: { 1: undefined, 2: memory(100, 0, 0) } })
  expect(reading).toMatchObject({ waiting: 1, inHand: 0, oldestAgeS: 1, failed: 2, memoryPercent: 10 })
  expect(readNext.failures()).toEqual(['no answer', undefined, undefined])
  await readNext({ queues: NOTHING, infos: { 2: memory(100, 0, 0) } })
  expect(readNext.failures()).toEqual([undefined, undefined, undefined])
})

it('counts shards and servers that stop replying with their last reading until they reply again', async () => {
  const readNext = makeGauge()
  await readNext({
    queues: [[idOf(9_000), idOf(9_000)], [idOf(1_000)], []],
    infos: { 1: memory(900, 0, 0), 2: memory(100, 0, 0) },
  })
  const rest = [[idOf(1_000), idOf(1_000)], []]
  const without = { queues: [undefined, ...rest], infos: { 1: undefined, 2: memory(200, 0, 0) } }
  for (let i = 0; i < 2; i += 1)
    expect(await readNext(without)).toMatchObject({ waiting: 4, oldestAgeS: 9, memoryPercent: 90 })
  const infos = { 1: memory(300, 0, 0), 2: memory(200, 0, 0) }
  const recovered = await readNext({ queues: [[], ...rest], infos })
  expect(recovered).toMatchObject({ waiting: 2, oldestAgeS: 1, failed: 3, memoryPercent: 30 })
})

it('counts no server that left the list of known servers', async () => {
  const readNext = makeGauge()
  await readNext({ queues: NOTHING, infos: { 1: memory(900, 0, 0), 2: memory(100, 0, 0) } })
  const rest = { queues: NOTHING, infos: { 2: memory(100, 0, 0) } }
  expect((await readNext(rest)).memoryPercent).toBe(10)
})

it('guesses nothing if no shard or no server replies, or a server does not report its memory', async () => {
  const readNext = makeGauge()
  const infos = { 1: memory(1, 0, 0) }
  await readNext({ queues: NOTHING, infos })
  const none = [undefined, undefined, undefined]
  await expect(readNext({ queues: none, infos })).rejects.toThrow('no answer')
  await expect(readNext({ queues: NOTHING, infos: { 1: undefined } })).rejects.toThrow('no answer')
  await expect(readNext({ queues: NOTHING, infos: { 1: '# Memory\r\n' } })).rejects.toThrow('used_memory')
  await expect(readNext({ queues: NOTHING, infos: {} })).rejects.toThrow('no Redis server is known')
})
