import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Follower, followLimits, followUntil } from '../../src/logs/follow.ts'
import type { Arrival, LogRow } from '../../src/logs/log-source.ts'

const NOON_MS = Date.UTC(2026, 10, 20, 12)

/** A table in memory. */
class FakeSource {
  stored: Arrival[] = []
  /** Which calls of `entries` fail, counted from 1. */
  failing: number[] = []
  #calls = 0

  store(...entries: (readonly [id: string, secondsAfterNoon: number])[]): void {
    for (const [id, seconds] of entries) this.stored.push({ id, receivedAtMs: NOON_MS + seconds * 1_000 })
  }

  async newestReceivedMs(fromMs: number): Promise<number> {
    return Math.max(0, ...this.#since(fromMs).map(({ receivedAtMs }) => receivedAtMs))
  }

  async arrivals(fromMs: number, limit: number, end: 'oldest' | 'newest'): Promise<Arrival[]> {
    const found = this.#since(fromMs)
    return end === 'oldest' ? found.slice(0, limit) : found.slice(-limit)
  }

  async *entries(found: readonly Arrival[]): AsyncGenerator<(LogRow & Arrival)[]> {
    if (found.length > followLimits.entriesPerFetchMax) throw new Error('too many at once')
    this.#calls += 1
    if (this.failing.includes(this.#calls)) throw new Error('unavailable')
    for (const arrival of found) yield [arrival as LogRow & Arrival]
  }

  #since(fromMs: number): Arrival[] {
    return this.stored
      .filter(({ receivedAtMs }) => receivedAtMs >= fromMs)
      .toSorted((a, b) => a.receivedAtMs - b.receivedAtMs)
  }
}

function setup() {
  const source = new FakeSource()
  const printed: string[] = []
  const follower = new Follower(source, async (rows) => {
    printed.push(...rows.map(({ id }) => id))
  })
  const sweep = async (): Promise<void> => {
    for (let polls = 0; polls < followLimits.pollsPerSweep; polls += 1) await follower.poll()
  }
  return { source, printed, follower, sweep }
}

describe('Follower', () => {
  test('prints each entry that arrives after the start once', async () => {
    const { source, printed, follower } = setup()
    source.store(['old', 0])
    await follower.start()
    await follower.poll()
    source.store(['a', 1], ['b', 2])
    await follower.poll()
    await follower.poll()
    expect(printed).toEqual(['a', 'b'])
  })

  test('prints late entries: slightly late ones in the next poll, others within the overlap in the next sweep', async () => {
    const { source, printed, follower, sweep } = setup()
    source.store(['old', 0])
    await follower.start()
    await follower.poll()
    source.store(['newest', 100])
    await follower.poll()
    source.store(['late by seconds', 98])
    await follower.poll()
    expect(printed).toEqual(['newest', 'late by seconds'])

    source.store(['late by a minute', 40])
    await sweep()
    await sweep()
    expect(printed).toEqual(['newest', 'late by seconds', 'late by a minute'])
  })

  test('continues in order after an outage of any length', async () => {
    const { source, printed, follower } = setup()
    source.store(['before', 0])
    await follower.start()
    await follower.poll()
    source.store(['during the outage', 3_600])
    await follower.poll()
    source.store(['after it', 7_200])
    await follower.poll()
    expect(printed).toEqual(['during the outage', 'after it'])
  })

  test('does not repeat entries that were printed first', async () => {
    const { source, printed, follower } = setup()
    await follower.start()
    source.store(['between', 1])
    for (const arrival of source.stored) follower.markPrinted(arrival)
    await follower.poll()
    expect(printed).toEqual([])
  })

  test('continues with the rest after printing failed halfway', async () => {
    const { source, printed, follower } = setup()
    await follower.start()
    const ids = Array.from({ length: 2_500 }, (_, index) => `entry ${String(index).padStart(4, '0')}`)
    source.store(...ids.map((id, index) => [id, index / 1_000] as const))
    source.failing = [2]
    await expect(follower.poll()).rejects.toThrow('unavailable')
    expect(printed).toHaveLength(followLimits.entriesPerFetchMax)
    await follower.poll()
    expect(printed).toEqual(ids)
  })

  test('remembers a bounded number of ids, and repeats no entry that was stored before the start', async () => {
    const { source, printed, follower } = setup()
    for (let index = 0; index < followLimits.seenMax + 500; index += 1)
      source.store([`stored ${index}`, index / 10_000])
    await follower.start()
    source.store(['new', 20])
    await follower.poll()
    expect(printed).toEqual(['new'])
  })

  test('splits a flood over several polls, and loses no entry', async () => {
    const { source, printed, follower } = setup()
    await follower.start()
    const limit = followLimits.seenMax + followLimits.arrivalsPerPollMin
    const total = limit + 500
    for (let index = 0; index < total; index += 1) source.store([`entry ${index}`, index / 1_000])
    expect(await follower.poll()).toBe(true)
    expect(printed).toHaveLength(limit)
    expect(await follower.poll()).toBe(false)
    expect(new Set(printed).size).toBe(total)
    expect(printed).toHaveLength(total)
  })
})

test('followUntil retries a known failure, reports it once, and stops with the signal', async () => {
  const { source, printed, follower } = setup()
  await follower.start()
  source.store(['a', 1])
  source.failing = [1, 2]
  const reports: string[] = []
  const stop = new AbortController()
  const following = followUntil(stop.signal, follower, {
    random: () => 0.99,
    describe: () => 'ClickHouse is unavailable',
    report: async (message) => {
      reports.push(message)
    },
  })
  while (reports.length < 2) await sleep(20)
  stop.abort()
  await following
  expect(printed).toEqual(['a'])
  expect(reports).toEqual([
    'ClickHouse is unavailable; retrying until it recovers',
    'ClickHouse is available again',
  ])
})

test('followUntil throws an unknown failure', async () => {
  const { source, follower } = setup()
  await follower.start()
  source.store(['a', 1])
  source.failing = [1]
  const following = followUntil(new AbortController().signal, follower, {
    random: () => 0,
    describe: () => undefined,
    report: async () => undefined,
  })
  await expect(following).rejects.toThrow('unavailable')
})
