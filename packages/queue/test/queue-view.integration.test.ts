import { hash } from 'node:crypto'
import { createLogger, type OpsAnswer, redisServers } from '@sluice/runtime'
import { compressRows } from '@sluice/rows'
import { beforeEach, describe, expect, inject, it, onTestFinished } from 'vitest'
import { Heartbeat } from '../src/heartbeat.ts'
import { QueueGauge } from '../src/queue-gauge.ts'
import { type QueueNames, shardNames } from '../src/queue-names.ts'
import { QueueView } from '../src/queue-view.ts'
import { SUMMARIES_MAX } from '../src/chunk-summaries.ts'
import { chunkOf, ConsumerFixture, fetchIds } from './support/consumer-fixture.ts'

const ROW = 'a row with hunter2-the-secret in it\n'
/** Of the row in each form in which Redis has it or an error may quote it. */
const SECRETS = [
  'hunter2',
  Buffer.from(ROW).toString('base64').slice(8, 24),
  compressRows(Buffer.from(ROW)).toString('base64').slice(8, 24),
  compressRows(Buffer.from(ROW)).toString('hex').slice(8, 24),
]

let fixture: ConsumerFixture
let view: QueueView
let names: QueueNames

beforeEach(() => {
  fixture = new ConsumerFixture(inject('services').redisUrl)
  names = fixture.names
  view = viewOf([names])
})

function viewOf(shards: readonly QueueNames[]): QueueView {
  const { redis } = fixture
  const count = { names: shards, refresh: async () => undefined }
  const gauge = new QueueGauge({
    redis,
    servers: () => redisServers(redis),
    shards: count,
    memoryBytes: 1_000_000_000,
    wallMs: Date.now,
    monotonicMs: () => performance.now(),
  })
  return new QueueView({ redis, prefix: prefixOf(names), gauge, shards: count })
}

const prefixOf = ({ queuePrefix }: QueueNames): string => queuePrefix.slice(1, -1)

async function answerOf(path: string): Promise<OpsAnswer> {
  const answer = await view.answer(path)
  if (answer === undefined) throw new Error(`the view does not have ${path}`)
  return answer
}

const jsonOf = async (path: string): Promise<unknown> => JSON.parse((await answerOf(path)).body)

const paths = ['/queues', '/queues.json', '/queues/0', '/queues/0.json']

describe('the chunks of a shard', () => {
  it('are shown by state, with what Redis has about them', async () => {
    const consumer = fixture.openConsumer()
    const chunk = chunkOf(ROW)
    const id = '01a208d0-642f-7002-913a-aaa298ecdf40'
    await fixture.add(id, chunk)
    expect(await fetchIds(consumer, 1)).toEqual([id])
    await fixture.ledger.claim('a-batch', [id])
    await fixture.add('failing', chunk)
    expect(await fetchIds(consumer, 1)).toEqual(['failing'])
    await consumer.fail('failing', new Error('rows of a-batch/0-5 are not found'))
    await fixture.add('waiting-1', chunk)
    await fixture.add('waiting-2', chunk)
    const common = {
      rows: 1,
      bytes: ROW.length,
      storedBytes: JSON.stringify(chunk).length,
      columns: chunk.columns,
    }
    expect(await jsonOf('/queues/0.json')).toEqual({
      shard: 0,
      chunks: {
        failed: [
          {
            id: 'failing',
            ...common,
            failure: { atMs: expect.any(Number), reason: 'rows of a-batch/0-5 are not found' },
          },
        ],
        inHand: [{ id, ...common, receivedAtMs: Date.parse('2026-11-23T14:30:04.591Z'), batchId: 'a-batch' }],
        waiting: [
          { id: 'waiting-1', ...common },
          { id: 'waiting-2', ...common },
        ],
        delayed: [],
      },
    })
    const { body } = await answerOf('/queues/0')
    for (const text of [id, '2026-11-23T14:30:04.591Z', 'a-batch', 'failing', 'waiting-2', 'are not found'])
      expect(body).toContain(text)
  })

  it('are limited in number', async () => {
    await fixture.addMany(SUMMARIES_MAX + 1)
    const { chunks } = (await jsonOf('/queues/0.json')) as { chunks: { waiting: { id: string }[] } }
    expect(chunks.waiting.map(({ id }) => id)).toEqual(
      Array.from({ length: SUMMARIES_MAX }, (_, n) => `chunk-${n}`),
    )
  })

  it('are shown if their format is unknown or their data damaged, and the job that is missing is not', async () => {
    const { columns: _columns, ...early } = chunkOf(ROW)
    await fixture.add('early', early)
    await fixture.add('later', { ...chunkOf(ROW), v: 2 as 1 })
    await fixture.add('damaged')
    await fixture.redis.hset(names.jobKey('damaged'), 'data', ROW)
    await fixture.add('missing')
    await fixture.redis.del(names.jobKey('missing'))
    const { chunks } = (await jsonOf('/queues/0.json')) as { chunks: { waiting: unknown[] } }
    expect(chunks.waiting).toEqual([
      { id: 'early', rows: 1, bytes: ROW.length, storedBytes: expect.any(Number) },
      { id: 'later', storedBytes: expect.any(Number) },
      { id: 'damaged', storedBytes: ROW.length },
    ])
  })
})

describe('no answer contains a part of a row', () => {
  it.each<[what: string, prepare: () => Promise<void>]>([
    ['of a chunk that waits', () => fixture.add('a', chunkOf(ROW))],
    [
      'of a chunk in hand',
      async () => {
        await fixture.add('a', chunkOf(ROW))
        await fetchIds(fixture.openConsumer(), 1)
      },
    ],
    [
      'that the message of a defect quotes',
      async () => {
        const consumer = fixture.openConsumer()
        await fixture.add('a', chunkOf(ROW))
        await fetchIds(consumer, 1)
        const quotes = `${ROW} ${chunkOf(ROW).frame} ${SECRETS.join(' ')}`
        await consumer.fail('a', new Error(`rows of a/0-5 are not found: ${quotes}`))
      },
    ],
    [
      'that is the data of a damaged job',
      async () => {
        await fixture.add('a')
        await fixture.redis.hset(names.jobKey('a'), 'data', ROW + SECRETS.join(' '))
      },
    ],
    [
      'in the place of the columns',
      () => fixture.add('a', { ...chunkOf(ROW), columns: Buffer.from(ROW).toString('hex') }),
    ],
  ])('%s', async (_what, prepare) => {
    // Otherwise nothing could be found anywhere.
    expect(ROW + JSON.stringify(chunkOf(ROW)) + Buffer.from(ROW).toString('base64')).toContain(SECRETS[2])
    await prepare()
    for (const path of paths) {
      const { status, headers, body } = await answerOf(path)
      expect(status).toBe(200)
      const answer = JSON.stringify(headers) + body
      for (const secret of [...SECRETS, Buffer.from(ROW).toString('hex').slice(0, 16)])
        expect(answer).not.toContain(secret)
    }
  })
})

describe('the overview', () => {
  it('has the chunks and rows of each shard, the memory of Redis and the processes', async () => {
    await fixture.add('a')
    await fixture.redis.hset(names.totalsKey, { added: 10, inserted: 6, 'dead-lettered': 1 })
    const heartbeat = new Heartbeat({
      redis: fixture.redis,
      prefix: prefixOf(names),
      processId: 'p',
      role: 'worker',
      host: '<b>host</b>',
      pid: 1,
      version: '1',
      readiness: () => ({ ready: false, reasons: ['no insert has succeeded'] }),
      monotonicMs: () => 0,
      logger: createLogger('test', 'silent'),
    })
    await heartbeat.beat()
    expect(await jsonOf('/queues.json')).toMatchObject({
      shards: [{ shard: 0, waiting: 1, inHand: 0, failed: 0, rows: 3, totals: { added: 10, inserted: 6 } }],
      servers: [{ usedBytes: expect.any(Number), limitBytes: expect.any(Number) }],
      processes: [{ id: 'p', notReady: 'no insert has succeeded' }],
    })
    const { body } = await answerOf('/queues')
    expect(body).toContain('href="/queues/0"')
    expect(body).toContain('not ready: no insert has succeeded')
    expect(body).toContain('&lt;b&gt;host&lt;/b&gt;')
    expect(body).not.toContain('<b>')
  })

  it('names failed chunks', async () => {
    expect((await answerOf('/queues')).body).not.toContain('wait for an operator')
    const consumer = fixture.openConsumer()
    await fixture.add('a')
    await fetchIds(consumer, 1)
    await consumer.fail('a', new Error('x'))
    expect((await answerOf('/queues')).body).toContain('1 failed chunks wait for an operator')
  })
})

it('has a page for each shard, and none for others', async () => {
  view = viewOf(shardNames(prefixOf(names), 2))
  expect((await answerOf('/queues/1')).body).toContain('<h1>Shard 1</h1>')
  expect((await answerOf('/queues/2')).status).toBe(404)
})

it.each(['/', '/queue', '/queues/', '/queues/x', '/queues/100', '/queues/0/x', '/queues.html', '/queues?x'])(
  'leaves the path %s to others',
  (path) => {
    expect(view.answer(path)).toBeUndefined()
  },
)

it('forbids everything that a page does not need, and allows its style', async () => {
  const { headers, body } = await answerOf('/queues/0')
  const [, style = ''] = /<style>(.*)<\/style>/s.exec(body) ?? []
  expect(headers['content-security-policy']).toBe(
    `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; ` +
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  )
  expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
  expect(body).not.toMatch(/<script|src=|https?:|\son\w+=|style=/)
})

it('answers 503 without a reason if Redis does not answer, and limits how many requests wait for it', async () => {
  const silent = {
    names: [names],
    read: () => new Promise<never>(() => undefined),
    failureOf: () => undefined,
  }
  const { redis } = fixture
  view = new QueueView({ redis, prefix: prefixOf(names), gauge: silent, shards: silent })
  const waiting = Array.from({ length: 4 }, () => answerOf('/queues'))
  const startedMs = performance.now()
  expect(await answerOf('/queues')).toMatchObject({ status: 503 })
  expect(performance.now() - startedMs).toBeLessThan(1_000)
  for (const answer of await Promise.all(waiting))
    expect(answer).toMatchObject({
      status: 503,
      body: '{"status":"the queues cannot be read at the moment"}',
    })
})

it('shows the last reading of a shard that does not answer, and says so', async () => {
  const { redis } = fixture
  const reading = { shard: 0, waiting: 5, delayed: 0, inHand: 0, failed: 0, oldestAgeS: 1 }
  const all = {
    waiting: 5,
    inHand: 0,
    failed: 0,
    oldestAgeS: 1,
    memoryPercent: 1,
    servers: [],
    shards: [reading],
  }
  const gauge = { read: async () => all, failureOf: () => 'no answer' }
  view = new QueueView({ redis, prefix: prefixOf(names), gauge, shards: { names: [names] } })
  expect(await jsonOf('/queues.json')).toMatchObject({ shards: [{ ...reading, isCurrent: false }] })
  expect((await answerOf('/queues')).body).toContain('no: the last reading')
})

it('answers 503 without the message if Redis rejects a command', async () => {
  await fixture.redis.set(names.failedKey, 'not a set')
  onTestFinished(async () => {
    await fixture.redis.del(names.failedKey)
  })
  expect(await answerOf('/queues/0')).toMatchObject({
    status: 503,
    body: '{"status":"the queues cannot be read at the moment"}',
  })
})
