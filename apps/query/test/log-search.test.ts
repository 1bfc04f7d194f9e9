import { type LogQuery, type LogReader, ReadLimitError } from '@sluice/clickhouse'
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type { EntryRow } from '../src/entries.ts'
import { readPage } from '../src/log-search.ts'
import { microsOf, timesAllowed } from '../src/times.ts'

const rowOf = (second: number) => {
  const timestamp = `2026-01-01T00:00:0${second}.000000Z`
  return { id: randomUUID(), timestamp, message: '' } as EntryRow
}

it('a page goes on after the entries that have arrived before a limit', async () => {
  const rows = [rowOf(3), rowOf(2), rowOf(1)]
  const asked: LogQuery['parameters'][] = []
  const stream = async function* (_project: string, { parameters }: LogQuery) {
    asked.push(parameters)
    yield asked.length === 1 ? rows.slice(0, 2) : rows.slice(2)
    if (asked.length === 1) throw new ReadLimitError('rows', undefined)
  } as LogReader['stream']
  const list = { ...timesAllowed, order: 'desc', receivedUntilMs: 0 } as const
  const signal = new AbortController().signal
  const page = await readPage({ projectId: 'shop', condition: { sql: 'true', parameters: {} } }, list, 3, {
    reader: { stream },
    signal,
    timeMs: 1_000,
    clock: { nowMs: () => 0 },
  })
  expect(page.rows).toEqual(rows)
  const last = microsOf(rows[1]?.timestamp ?? '')
  expect(asked[1]).toMatchObject({ until: `${last + 1n}`, lastTimestamp: `${last}`, lastId: rows[1]?.id })
})
