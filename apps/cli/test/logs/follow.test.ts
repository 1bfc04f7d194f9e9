import { expect, test, vi } from 'vitest'
import { Follower, followLimits, followUntil } from '../../src/logs/follow.ts'
import type { Arrival, LogRow } from '../../src/logs/log-source.ts'

const NOON_MS = Date.UTC(2026, 10, 20, 12)

type Stored = readonly [id: string, secondsAfterNoon: number]

/** A table in memory. */
class FakeSource {
  stored: Arrival[] = []
  /** Which calls of `entries` fail, counted from 1. */
  failing: number[] = []
  #calls = 0

  store(...entries: Stored[]): void {
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

/** A follower that has started on a table with these entries. */
async function start(...stored: Stored[]) {
  const source = new FakeSource()
  const printed: string[] = []
  const follower = new Follower(source, async (rows) => {
    printed.push(...rows.map(({ id }) => id))
  })
  source.store(...stored)
  await follower.start()
  /** Stores entries, and polls. */
  const poll = async (...entries: Stored[]): Promise<boolean> => {
    source.store(...entries)
    return follower.poll()
  }
  return { source, printed, follower, poll }
}

test('late entries are printed: slightly late ones in the next poll, others within the overlap in the next sweep', async () => {
  const { source, printed, poll } = await start(['old', 0])
  await poll()
  await poll(['newest', 100])
  await poll(['late by seconds', 98])
  expect(printed).toEqual(['newest', 'late by seconds'])
  source.store(['late by a minute', 40])
  for (let polls = 0; polls < 2 * followLimits.pollsPerSweep; polls += 1) await poll()
  expect(printed).toEqual(['newest', 'late by seconds', 'late by a minute'])
})

test('entries after an outage of any length are printed in order', async () => {
  const { printed, poll } = await start(['before', 0])
  await poll()
  await poll(['during the outage', 3_600])
  await poll(['after it', 7_200])
  expect(printed).toEqual(['during the outage', 'after it'])
})

test('entries that were printed first are not repeated', async () => {
  const { source, printed, follower, poll } = await start()
  source.store(['between', 1])
  for (const arrival of source.stored) follower.markPrinted(arrival)
  await poll()
  expect(printed).toEqual([])
})

test('the rest is printed after printing failed halfway', async () => {
  const { source, printed, poll } = await start()
  const entries = Array.from({ length: 2_500 }, (_, index): Stored => [`entry ${index}`, index / 1_000])
  source.failing = [2]
  await expect(poll(...entries)).rejects.toThrow('unavailable')
  expect(printed).toHaveLength(followLimits.entriesPerFetchMax)
  await poll()
  expect(printed).toEqual(entries.map(([id]) => id))
})

test('a bounded number of ids is remembered, and no entry from before the start is repeated', async () => {
  const count = followLimits.seenMax + 500
  const stored = Array.from({ length: count }, (_, index): Stored => [`${index}`, index / 10_000])
  const { source, printed, follower } = await start()
  for (const entry of stored) source.store(entry)
  await follower.start()
  source.store(['new', 20])
  await follower.poll()
  expect(printed).toEqual(['new'])
})

test('a flood is split over several polls, and no entry is lost', async () => {
  const { source, printed, poll } = await start()
  const limit = followLimits.seenMax + followLimits.arrivalsPerPollMin
  for (let index = 0; index < limit + 500; index += 1) source.store([`entry ${index}`, index / 1_000])
  expect(await poll()).toBe(true)
  expect(printed).toHaveLength(limit)
  expect(await poll()).toBe(false)
  expect([printed.length, new Set(printed).size]).toEqual([limit + 500, limit + 500])
})

test('followUntil retries a known failure, reports it once, and stops with the signal', async () => {
  const { source, printed, follower } = await start()
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
  const expected = ['ClickHouse is unavailable; retrying until it recovers', 'ClickHouse is available again']
  await vi.waitFor(() => expect(reports).toEqual(expected))
  stop.abort()
  await following
  expect(printed).toEqual(['a'])
})

test('followUntil throws an unknown failure', async () => {
  const { source, follower } = await start()
  source.store(['a', 1])
  source.failing = [1]
  const options = { random: () => 0, describe: () => undefined, report: async () => undefined }
  await expect(followUntil(new AbortController().signal, follower, options)).rejects.toThrow('unavailable')
})
