import { eventually, postLogs } from '@sluice/harness'
import { readAccounts, type Samples, scrape, sumOf } from '@sluice/harness/metrics'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'

let installation: Installation

beforeAll(async () => {
  installation = await startTestInstallation({ api: { environment: { METRICS_PROJECTS_MAX: '10' } } })
})

afterAll(() => installation?.stop())

const pages = (): Promise<Samples[]> => Promise.all(Object.values(installation.opsUrls).map(scrape))
const entry = { level: 'info', message: 'hello' }

it('counts requests, entries, chunks, batches and rows', async () => {
  const before = await pages()
  const logs = Array.from({ length: 9 }, () => entry)
  await postLogs(installation, { logs: [...logs, { level: 'info' }] })
  await postLogs(installation, entry)
  await postLogs(installation, { level: 'info' })
  await fetch(`${installation.apiUrl}/no-such-path`)
  await eventually(async () => {
    const after = await pages()
    const grown = (metric: string, label?: string): number =>
      sumOf(after, metric, label) - sumOf(before, metric, label)
    const posts = (status: string): number =>
      grown(`sluice_http_requests_total`, `route="/v1/logs",method="POST",status="${status}"`)
    expect([posts('202'), posts('400')]).toEqual([2, 1])
    expect(grown('sluice_http_requests_total', 'route="other"')).toBe(1)
    expect(grown('sluice_entries_accepted_total')).toBe(10)
    expect(grown('sluice_project_entries_accepted_total')).toBe(10)
    expect(grown('sluice_entries_rejected_total', 'reason="missing"')).toBe(2)
    expect(grown('sluice_requests_rejected_total', 'reason="invalid_entry"')).toBe(1)
    expect(grown('sluice_requests_rejected_total', 'reason="not_found"')).toBe(1)
    expect(grown('sluice_ack_duration_seconds_count')).toBe(2)
    expect(grown('sluice_request_body_bytes_total')).toBe(grown('sluice_request_decoded_bytes_total'))
    expect(grown('sluice_chunk_rows_sum')).toBe(10)
    expect(grown('sluice_chunk_add_duration_seconds_count', 'result="ok"')).toBe(
      grown('sluice_chunk_rows_count'),
    )
    expect(grown('sluice_key_lookups_total')).toBe(3)
    expect(grown('sluice_batch_rows_sum')).toBe(10)
    expect(grown('sluice_rows_inserted_total')).toBe(10)
    expect(grown('sluice_lag_seconds_count')).toBe(grown('sluice_chunk_rows_count'))
    expect(grown('sluice_rows_total', 'stage="added"')).toBe(10)
  })
  const accounts = await readAccounts(Object.values(installation.opsUrls))
  expect(accounts.added).toBe(accounts.inserted)
  expect(accounts).toMatchObject({ deadLettered: 0, removed: 0, queued: 0 })
})

it('exports what docs/metrics.md describes, and describes what it exports', async () => {
  const document = await readFile(new URL('../docs/metrics.md', import.meta.url), 'utf8')
  const described = new Set(
    Array.from(document.matchAll(/`((?:sluice|nodejs|process)_\w+)`/g), ([, name]) => name),
  )
  const texts = await Promise.all(
    Object.values(installation.opsUrls).map(async (opsUrl) => (await fetch(`${opsUrl}/metrics`)).text()),
  )
  const exported = new Set(Array.from(texts.join('\n').matchAll(/^# TYPE (\w+) /gm), ([, name]) => name))
  expect([...described].filter((name) => !exported.has(name))).toEqual([])
  expect(
    [...exported].filter((name) => name?.startsWith('sluice_') === true && !described.has(name)),
  ).toEqual([])
})
