import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { identify } from '../../src/idempotency/idempotency-record.ts'
import { Turns } from '../../src/turns.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

const LARGE = 64 * 1024 + 1
const headers = { 'sluice-idempotency': 'body' }
const hashes = Object.getPrototypeOf(createHash('sha256')) as ReturnType<typeof createHash>

let nowMs: number
let scheduled: (() => void)[]
let turns: Turns

beforeEach(() => {
  nowMs = 0
  scheduled = []
  turns = new Turns(
    (turn) => scheduled.push(turn),
    () => nowMs,
  )
})

afterEach(() => {
  vi.restoreAllMocks()
})

const identifyBody = (bytes: number, sent: Readonly<Record<string, string>> = headers) =>
  identify({ headers: sent, routeOptions: {}, url: '/x' }, Buffer.alloc(bytes), turns, 'demo')

describe('the body of a request with an identity', () => {
  it('is hashed at once if it is small', () => {
    nowMs = 1_000
    expect(identifyBody(LARGE - 1)).toMatchObject({ digest: expect.any(String) as string })
    expect(scheduled).toEqual([])
  })

  it('waits for its turn if it is large, and others used up this one', async () => {
    const update = vi.spyOn(hashes, 'update')
    expect(identifyBody(LARGE)).not.toBeInstanceOf(Promise)
    nowMs = 8
    const second = identifyBody(LARGE)
    expect(second).toBeInstanceOf(Promise)
    // The media type and the body of the first one.
    expect(update).toHaveBeenCalledTimes(2)
    for (const turn of scheduled.splice(0)) turn()
    expect(await second).toEqual(identifyBody(LARGE))
  })

  it('is not hashed without a key', () => {
    const update = vi.spyOn(hashes, 'update')
    nowMs = 1_000
    expect(identifyBody(LARGE, {})).toBeUndefined()
    expect(update).not.toHaveBeenCalled()
  })
})

describe('a request with an idempotency key', () => {
  let api: TestApi

  beforeEach(() => {
    api = buildTestApi()
  })

  afterEach(async () => {
    await api.close()
  })

  it.each([
    ['OTLP in JSON', '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}]}', '/v1/logs'],
    ['an entry', '{"level":"info","message":"m"}', '/v1/logs'],
    ['an entry that is parsed', '{"level":"info","message":"m","x":1e400}', '/v1/logs'],
    ['an event', '{"event":"m"}', '/services/collector'],
  ])('has its body hashed once: %s', async (_what, body, url) => {
    const update = vi.spyOn(hashes, 'update')
    expect((await api.post(body, { url, headers })).statusCode).toBeLessThan(300)
    const bodies = update.mock.calls.filter(([data]) => Buffer.isBuffer(data) && data.toString() === body)
    expect(bodies).toHaveLength(1)
  })
})
