import { createLogger, type Logger } from '@sluice/runtime'
import { afterEach, beforeEach, expect, it, type MockInstance, vi } from 'vitest'
import { followChunks, type FollowedRequest, REQUESTS_PER_LINE_MAX } from '../../src/chunks/chunk-follower.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

interface Line {
  readonly chunkId: string
  readonly requests: readonly FollowedRequest[]
  readonly reason?: string
}

let logger: Logger
let debug: MockInstance
let api: TestApi

beforeEach(() => {
  logger = createLogger('test', 'debug')
  debug = vi.spyOn(logger, 'debug').mockImplementation(() => undefined)
  api = buildTestApi({ follow: followChunks(logger) })
})

afterEach(() => api.close())

const entries = (count: number): object[] =>
  Array.from({ length: count }, (_, i) => ({ level: 'info', message: `entry ${i}` }))
const lines = (message: string): Line[] =>
  debug.mock.calls.filter(([, text]) => text === message).map(([fields]) => fields as Line)

async function post(requestId: string, body: object, headers: Record<string, string> = {}): Promise<number> {
  const { statusCode } = await api.post(body, { headers: { 'x-request-id': requestId, ...headers } })
  return statusCode
}

/** The ids of the rows in the queue. */
const storedIds = (): string[] => api.queue.rows.map(({ id = '' }) => id)

it.each([
  // The scanner leaves a body with an invalid entry to the parser.
  ['parsed', [...entries(1), { level: 'none' }, ...entries(2)], {}],
  ['with an idempotency key', entries(3), { 'idempotency-key': 'a-key' }],
])('names the chunk and the entries of a request that is %s', async (_how, body, headers) => {
  expect(await post('request-1', body, headers)).toBe(202)
  const ids = storedIds()
  expect(ids).toHaveLength(3)
  const [firstEntryId, , lastEntryId] = ids
  const requests = [{ requestId: 'request-1', entries: 3, firstEntryId, lastEntryId }]
  expect(lines('chunk added')).toEqual([{ chunkId: api.queue.adds[0]?.chunkId, requests }])
})

it('names a replayed request in no chunk', async () => {
  await post('first', entries(1), { 'idempotency-key': 'a-key' })
  await post('second', entries(1), { 'idempotency-key': 'a-key' })
  expect(lines('chunk added')).toMatchObject([{ requests: [{ requestId: 'first' }] }])
})

it('divides the requests of a chunk among lines', async () => {
  const ids = Array.from({ length: 2 * REQUESTS_PER_LINE_MAX + 1 }, (_, i) => `r${i}`)
  await Promise.all(ids.map((id) => post(id, entries(1))))
  const logged = lines('chunk added').map(({ requests }) => requests)
  expect(logged.map(({ length }) => length)).toEqual([REQUESTS_PER_LINE_MAX, REQUESTS_PER_LINE_MAX, 1])
  expect(logged.flat().map(({ requestId }) => requestId)).toEqual(ids)
  expect(logged.flat().map(({ firstEntryId }) => firstEntryId)).toEqual(storedIds())
})

it('does not exist at another level', () => {
  expect(followChunks(createLogger('test', 'info'))).toBeUndefined()
})
