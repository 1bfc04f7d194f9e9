import { type LogQuery, type LogReader, ReadLimitError } from '@sluice/clickhouse'
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type { EntryRow } from '../src/entries.ts'
import { type Page, readPage } from '../src/log-search.ts'
import { microsOf, timesAllowed } from '../src/times.ts'

/** An entry, earlier than those with lower numbers. */
const rowOf = (n: number, message = ''): EntryRow => {
  const timestamp = `2026-01-01T00:00:${60 - n}.000000Z`
  return { id: randomUUID(), timestamp, message } as EntryRow
}

/** @param stream answers a query, the first one with 1 */
function newest(limit: number, stream: (query: number) => AsyncGenerator<EntryRow[]>) {
  const asked: LogQuery['parameters'][] = []
  const reader = {
    stream: (_project: string, { parameters }: LogQuery) => stream(asked.push(parameters)),
  } as Pick<LogReader, 'stream'>
  const list = { ...timesAllowed, order: 'desc', receivedUntilMs: 0 } as const
  const condition = { sql: 'true', parameters: {} }
  const { signal } = new AbortController()
  const options = { reader, signal, timeMs: 1_000, clock: { nowMs: () => 0 } }
  const page: Promise<Page> = readPage({ projectId: 'shop', condition }, list, limit, options)
  return { page, asked }
}

it('a page goes on after the entries that have arrived before a limit', async () => {
  const rows = [rowOf(1), rowOf(2), rowOf(3)]
  const { page, asked } = newest(3, async function* (query) {
    yield query === 1 ? rows.slice(0, 2) : rows.slice(2)
    if (query === 1) throw new ReadLimitError('rows', undefined)
  })
  expect((await page).rows).toEqual(rows)
  const last = microsOf(rows[1]?.timestamp ?? '')
  expect(asked[1]).toMatchObject({ until: `${last + 1n}`, lastTimestamp: `${last}`, lastId: rows[1]?.id })
})

it('a page ends after 16 MB, and the next one begins there', async () => {
  const rows = Array.from({ length: 30 }, (_, n) => rowOf(n + 1, 'x'.repeat(1_000_000)))
  const { page } = newest(100, async function* () {
    yield rows
  })
  const { rows: found, rest, limitedBy } = await page
  expect(found).toEqual(rows.slice(0, 17))
  expect(limitedBy).toBe('bytes')
  expect(rest?.last?.id).toBe(found.at(-1)?.id)
})
