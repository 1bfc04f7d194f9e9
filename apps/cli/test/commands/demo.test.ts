import { HttpServer } from '@sluice/harness/http-server'
import { levels } from '@sluice/schema'
import type { IncomingMessage, ServerResponse } from 'node:http'
import * as consumers from 'node:stream/consumers'
import { zstdDecompressSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { run } from '../../src/run.ts'
import { type FakeContext, fakeContext } from '../fake-context.ts'

interface Sent {
  readonly timestamp: string
  readonly level: (typeof levels)[number]
  readonly service: string
  readonly stack?: string
  readonly metadata: { readonly request_id: string }
}

let sent: Sent[]
const api = new HttpServer((request, response) => void take(request, response))

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await consumers.buffer(request)
  const isCompressed = request.headers['content-encoding'] === 'zstd'
  const { logs } = JSON.parse(String(isCompressed ? zstdDecompressSync(body) : body)) as { logs: Sent[] }
  sent.push(...logs)
  response.writeHead(202, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ success: true, accepted: logs.length, rejected: 0 }))
}

beforeEach(async () => {
  sent = []
  await api.listen()
})
afterEach(() => api.close())

const NOW = Date.UTC(2026, 10, 24, 12)
/** The same numbers in each run. */
function numbers(): () => number {
  let state = 1
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647
}
const context = (given: Partial<FakeContext> = {}): FakeContext =>
  fakeContext({
    environment: { SLUICE_API_URL: api.url, SLUICE_API_KEY: 'slk_test' },
    random: numbers(),
    ...given,
  })

test('demo sends requests of three services over the last 15 minutes, with a burst of errors in the middle', async () => {
  const used = context({ nowMs: () => NOW })
  expect(await run(['demo'], used)).toBe(0)
  expect(used.written.stdout).toMatch(/^40\d of 40\d entries sent, 40\d accepted, 0 rejected;/)
  expect(new Set(sent.map(({ service }) => service))).toEqual(new Set(['web', 'checkout', 'worker']))
  const times = sent.map(({ timestamp }) => Date.parse(timestamp))
  expect(Math.min(...times)).toBeGreaterThan(NOW - 900_000)
  expect(Math.max(...times)).toBeLessThanOrEqual(NOW)
  const errors = sent.filter(({ level }) => level === 'error')
  const inMiddle = errors.filter(({ timestamp }) => Math.abs(NOW - 450_000 - Date.parse(timestamp)) < 60_000)
  expect(inMiddle).toEqual(errors)
  expect(errors.length).toBeGreaterThan(15)
  expect(errors.some(({ stack }) => stack?.includes('\n    at '))).toBe(true)
  const requests = Map.groupBy(sent, ({ metadata }) => metadata.request_id)
  const services = [...requests.values()].map(
    (entries) => new Set(entries.map(({ service }) => service)).size,
  )
  expect(services.filter((count) => count === 3).length).toBeGreaterThan(20)
  for (const { level } of sent) expect(levels).toContain(level)
})

test('demo --rate goes on until Ctrl-C, without entries of the future', async () => {
  const used = context()
  const running = run(['demo', '--entries', '0', '--rate', '1000'], used)
  await vi.waitFor(() => expect(sent.length).toBeGreaterThan(1_000))
  used.interrupt()
  expect(await running).toBe(130)
  expect(Math.max(...sent.map(({ timestamp }) => Date.parse(timestamp)))).toBeLessThanOrEqual(Date.now())
  expect(used.written.stdout).toMatch(/ 0 rejected;/)
})
