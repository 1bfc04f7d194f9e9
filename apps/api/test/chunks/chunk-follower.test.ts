import { QueueUnavailableError } from '@sluice/queue'
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
  ['scanned', entries(3), {}],
  // The scanner leaves a body with an invalid entry to the parser.
  ['parsed', [...entries(1), { level: 'none' }, ...entries(2)], {}],
  ['with an idempotency key', entries(3), { 'idempotency-key': 'a-key' }],
])('names the chunk and the entries of a request that is %s', async (_how, body, headers) => {
  expect(await post('request-1', body, headers)).toBe(202)
  const ids = storedIds()
  expect(ids).toHaveLength(3)
  expect(lines('chunk added')).toEqual([
    {
      chunkId: api.queue.adds[0]?.chunkId,
      requests: [{ requestId: 'request-1', entries: 3, firstEntryId: ids[0], lastEntryId: ids[2] }],
    },
  ])
})

it('names all requests of a chunk, each with its own entries', async () => {
  await Promise.all(['a', 'b', 'c'].map((id) => post(id, entries(2))))
  const ids = storedIds()
  const [line] = lines('chunk added')
  expect(line?.requests.map(({ requestId }) => requestId)).toEqual(['a', 'b', 'c'])
  expect(line?.requests.map(({ firstEntryId, lastEntryId }) => [firstEntryId, lastEntryId])).toEqual([
    [ids[0], ids[1]],
    [ids[2], ids[3]],
    [ids[4], ids[5]],
  ])
})

it('names all requests with idempotency keys of a commit, each with its own entries', async () => {
  await Promise.all(['a', 'b'].map((id) => post(id, entries(2), { 'idempotency-key': id })))
  const ids = storedIds()
  const requests = lines('chunk added').flatMap((line) => line.requests)
  expect(requests.map(({ requestId }) => requestId)).toEqual(['a', 'b'])
  expect(requests.map(({ firstEntryId }) => firstEntryId)).toEqual([ids[0], ids[2]])
})

it('names a replayed request in no chunk', async () => {
  await post('first', entries(1), { 'idempotency-key': 'a-key' })
  await post('second', entries(1), { 'idempotency-key': 'a-key' })
  expect(lines('chunk added').flatMap(({ requests }) => requests.map(({ requestId }) => requestId))).toEqual([
    'first',
  ])
})

it.each<Record<string, string>>([{}, { 'idempotency-key': 'a-key' }])(
  'names the chunk of a request whose add got no reply, with %j',
  async (headers) => {
    api.queue.holding = true
    const answer = post('request-1', entries(1), headers)
    const add = await vi.waitUntil(() => api.queue.adds[0])
    add.fail(new QueueUnavailableError('no answer'))
    expect(await answer).toBe(503)
    expect(lines('chunk not acknowledged')).toMatchObject([
      { chunkId: add.chunkId, reason: 'QueueUnavailableError', requests: [{ requestId: 'request-1' }] },
    ])
    expect(lines('chunk added')).toEqual([])
  },
)

it('divides the requests of a chunk among lines', async () => {
  const ids = Array.from({ length: 2 * REQUESTS_PER_LINE_MAX + 1 }, (_, i) => `r${i}`)
  await Promise.all(ids.map((id) => post(id, entries(1))))
  const logged = lines('chunk added')
  expect(logged.map(({ requests }) => requests.length)).toEqual([
    REQUESTS_PER_LINE_MAX,
    REQUESTS_PER_LINE_MAX,
    1,
  ])
  expect(logged.flatMap(({ requests }) => requests.map(({ requestId }) => requestId))).toEqual(ids)
})

it.each(['info', 'warn', 'silent'])('does not exist at level %s', (level) => {
  expect(followChunks(createLogger('test', level))).toBeUndefined()
})
