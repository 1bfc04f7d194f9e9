import { seededRandom } from '@sluice/harness'
import { randomUUIDv7 } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { type Entry, type RowFields, useQueryTests } from './support/test-query.ts'

const { store, open } = await useQueryTests()
const api = await open({}, afterAll)

interface LogsAnswer {
  readonly entries: Entry[]
  readonly next: string | null
  readonly complete_until: string | null
  readonly limited_by?: string
}

const placeOf = ({ timestamp, id }: Entry): string => `${timestamp}${id}`

/** Newest first. */
function newestFirst(entries: readonly Entry[]): Entry[] {
  return entries.toSorted((a, b) => (placeOf(a) < placeOf(b) ? 1 : -1))
}

const START = Date.UTC(2026, 0, 1)
const random = seededRandom(1)
const levels = ['debug', 'info', 'warn', 'error']

/** Entries of two days, in clusters, some with the same timestamp to the microsecond. */
function randomRows(projectId: string, count: number, fields: Partial<RowFields> = {}) {
  return Array.from({ length: count }, (_, index) => {
    const ms = START + Math.floor(random() ** 3 * 2 * 86_400_000)
    const us = random() < 0.3 ? '000' : String(Math.floor(random() * 1_000)).padStart(3, '0')
    const isShared = random() < 0.3
    const time = new Date(isShared ? START + 5_000 : ms).toISOString().slice(0, -1)
    return {
      projectId,
      timestamp: `${time}${isShared ? '001' : us}Z`,
      level: levels[Math.floor(random() * levels.length)] ?? 'info',
      ...(random() < 0.6 && { service: random() < 0.5 ? 'web' : 'api' }),
      ...fields,
      message: random() < 0.1 ? `Rare needle ${index}` : `common ${index}`,
      ...(random() < 0.5 && {
        metadata: `{"n":${index},"big":12345678901234567890123,"user":{"id":${index % 7}}}`,
      }),
    }
  })
}

const range = { from: '2026-01-01T00:00:00Z', until: '2026-01-04T00:00:00Z' }

async function pages(
  key: string,
  parameters: Record<string, string>,
  between: () => Promise<unknown> = async () => undefined,
): Promise<Entry[]> {
  const all: Entry[] = []
  let cursor: string | null = null
  do {
    const answer: LogsAnswer = await api.json(key, 'logs', {
      ...parameters,
      ...(cursor !== null && { cursor }),
    })
    all.push(...answer.entries)
    cursor = answer.next
    if (cursor !== null) await between()
  } while (cursor !== null)
  return all
}

describe('logs', () => {
  it('has every entry once over all pages, in order, while others arrive', async () => {
    const { projectId, key } = api.addProject()
    const expected = newestFirst(await store(randomRows(projectId, 700)))
    await store(randomRows(api.addProject().projectId, 50))
    for (const order of ['desc', 'asc']) {
      const found = await pages(key, { ...range, order, limit: '97' }, () =>
        store(randomRows(projectId, 3, { receivedMs: Date.now() + 60_000 })),
      )
      expect(found).toEqual(order === 'desc' ? expected : expected.toReversed())
    }
  })

  it('copies metadata with integers of any size', async () => {
    const { projectId, key } = api.addProject()
    const metadata = String.raw`{"big":123456789012345678901234567890,"a\\":1.50,"n":null}`
    await store([{ projectId, metadata }])
    const text = await (await api.get(key, 'logs')).text()
    expect(text).toContain(`"metadata":${metadata}}`)
  })
})

/** Queries, and what they mean. */
const queries: readonly (readonly [text: string, matches: (entry: Entry) => boolean])[] = [
  ['', () => true],
  ['needle', ({ message }) => message.includes('needle')],
  ['level:error', ({ level }) => level === 'error'],
  [
    'level:(error OR warn) -service:web',
    ({ level, service }) => /error|warn/.test(level) && service !== 'web',
  ],
  ['user.id:3', ({ metadata }) => (metadata as { user?: { id: number } } | undefined)?.user?.id === 3],
  [
    'n:>=100 NOT common',
    ({ metadata, message }) => Number((metadata as { n?: number })?.n) >= 100 && !message.includes('common'),
  ],
  ['nothing-like-this', () => false],
]

describe('random entries', () => {
  it('are found by each query, in pages and in the sums of a histogram', async () => {
    const { projectId, key } = api.addProject()
    const entries = newestFirst(await store(randomRows(projectId, 500)))
    for (const [query, matches] of queries) {
      const expected = entries.filter(matches)
      expect(await pages(key, { ...range, query, limit: '83' })).toEqual(expected)
      const sums: { total: number; buckets: { counts: Record<string, number> }[] } = await api.json(
        key,
        'histogram',
        { ...range, query },
      )
      expect(sums.total).toBe(expected.length)
      for (const level of levels) {
        const count = sums.buckets.reduce((sum, { counts }) => sum + (counts[level] ?? 0), 0)
        expect(count).toBe(expected.filter((entry) => entry.level === level).length)
      }
    }
  })

  it('a query that cannot be parsed is rejected with the position of each error', async () => {
    const { key } = api.addProject()
    const response = await api.get(key, 'logs', { query: 'level:error (a' })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_query',
      errors: [{ position: expect.any(Number), message: expect.any(String) }],
    })
  })

  it('a query that ClickHouse would take seconds to plan, or reject, is rejected', async () => {
    const { key } = api.addProject()
    const query = Array.from({ length: 32 }, () => 'a.b.c.d:1..2').join(' ')
    expect(await api.status(key, 'logs', { query })).toBe(400)
  })
})

describe('after', () => {
  it('waits until the entry, and everything that was accepted before it, can be seen', async () => {
    const { projectId, key } = api.addProject()
    const id = randomUUIDv7()
    api.completeMs = Date.now() - 1_000
    const waiting = api.json<LogsAnswer>(key, 'logs', { after: id, from: '-1h' })
    await store([{ projectId, id, receivedMs: Date.now() }])
    // It is stored, and something earlier may not be.
    expect(await Promise.race([waiting, sleep(500, 'waits')])).toBe('waits')
    api.completeMs = Date.now() + 10
    const { entries, complete_until: completeUntil } = await waiting
    expect(entries.map((entry) => entry.id)).toEqual([id])
    expect(completeUntil).toBe(new Date(api.completeMs).toISOString())
  })
})
