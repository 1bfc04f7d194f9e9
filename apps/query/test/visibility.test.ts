import type { LogReader } from '@sluice/clickhouse'
import { randomUUIDv7 } from 'node:crypto'
import { expect, it } from 'vitest'
import { waitUntilVisible } from '../src/visibility.ts'

it('a client does not wait longer than ten seconds for an entry', async () => {
  let nowMs = 0
  const clock = {
    nowMs: () => nowMs,
    sleep: async (ms: number) => {
      nowMs += ms
    },
  }
  const completePoint = { until: () => Promise.resolve(null) }
  const entry = { projectId: 'shop', id: randomUUIDv7() }
  const { signal } = new AbortController()
  await expect(
    waitUntilVisible({} as LogReader, completePoint, clock, entry, { signal }),
  ).rejects.toMatchObject({ code: 'not_visible_yet', status: 504 })
  expect(nowMs).toBe(10_000)
})
