import { eventually, postLogs } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'
import { OtlpReceiver, type ReceivedSpan } from '@sluice/harness/otlp-receiver'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { spanLimits } from '@sluice/traces'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'

const REQUEST = 'POST /v1/logs'

let receiver: OtlpReceiver
let installation: Installation
let requests = 0

beforeAll(async () => {
  receiver = await OtlpReceiver.open()
  const environment = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: receiver.url }
  installation = await startTestInstallation({
    // Without a traceparent, a request is not traced.
    api: { environment: { ...environment, OTEL_TRACES_SAMPLER_ARG: '0' } },
    worker: { environment },
  })
})

afterEach(() => {
  receiver.spans.length = 0
  receiver.mode = 'accepting'
})

afterAll(async () => {
  await installation?.stop()
  await receiver?.close()
})

/** The span of a caller. */
interface Caller {
  readonly traceId: string
  readonly spanId: string
  readonly header: string
}

function makeCaller(): Caller {
  requests += 1
  const traceId = requests.toString(16).padStart(32, '1')
  const spanId = requests.toString(16).padStart(16, '2')
  return { traceId, spanId, header: `00-${traceId}-${spanId}-01` }
}

async function post(service: string, headers: Record<string, string>): Promise<number> {
  const entries = ['a secret message', 'another one'].map((message) => ({ level: 'info', message, service }))
  return (await postLogs(installation, entries, headers)).status
}

/** The rows of a service in ClickHouse. */
async function countRows(service: string): Promise<number> {
  const query = 'SELECT toUInt32(count()) AS rows FROM logs WHERE service = {service: String}'
  const [row] = await select<{ rows: number }>(installation.clickhouse, query, { service })
  return row?.rows ?? 0
}

const stored = (service: string, rows: number): Promise<void> =>
  eventually(async () => expect(await countRows(service)).toBe(rows))

/** The one received span with this name that has the attribute. */
function only(name: string, attribute?: string, value?: string): ReceivedSpan {
  const spans = receiver
    .named(name)
    .filter(({ attributes }) => attribute === undefined || attributes[attribute] === value)
  expect(spans).toHaveLength(1)
  return spans[0] as ReceivedSpan
}

const endOf = ({ startMs, durationMs }: ReceivedSpan): number => startMs + durationMs

const received = (...names: readonly string[]): Promise<void> =>
  eventually(async () => {
    expect(receiver.spans.map(({ name }) => name).toSorted()).toEqual([...names].toSorted())
  })

it('follows a request from its caller to the insert of its rows', async () => {
  const caller = makeCaller()
  const status = await post('one', { traceparent: caller.header, 'x-request-id': 'the-request' })
  expect(status).toBe(202)
  await received(REQUEST, 'chunk', 'batch', 'insert')
  const [request, chunk, batch, insert] = [only(REQUEST), only('chunk'), only('batch'), only('insert')]
  expect(request).toMatchObject({
    service: 'sluice-api',
    traceId: caller.traceId,
    parentSpanId: caller.spanId,
    links: [chunk.spanId],
    attributes: {
      'http.route': '/v1/logs',
      'http.response.status_code': 202,
      'sluice.request.id': 'the-request',
      'sluice.project.id': installation.projectId,
      'sluice.request.entries': 2,
    },
  })
  expect(chunk).toMatchObject({
    service: 'sluice-api',
    links: [request.spanId],
    attributes: { 'sluice.chunk.rows': 2, 'sluice.chunk.result': 'added', 'sluice.shard': 0 },
  })
  expect(batch).toMatchObject({
    service: 'sluice-worker',
    links: [chunk.spanId],
    attributes: { 'sluice.batch.rows': 2, 'sluice.batch.result': 'done', 'sluice.shard': 0 },
  })
  const batchId = batch.attributes['sluice.batch.id']
  expect(insert).toMatchObject({
    service: 'sluice-worker',
    traceId: batch.traceId,
    parentSpanId: batch.spanId,
    attributes: { 'sluice.insert.query_id': `sluice/rows/${batchId}`, 'sluice.insert.rows': 2 },
  })
  expect(new Set([request, chunk, batch].map(({ traceId }) => traceId)).size).toBe(3)
  expect(receiver.spans.filter(({ isError }) => isError)).toEqual([])
  // Each ends after what it waits for, by the clock of one machine.
  expect(chunk.startMs).toBeGreaterThanOrEqual(request.startMs)
  expect(endOf(insert)).toBeLessThanOrEqual(endOf(batch))
  expect(JSON.stringify(receiver.spans)).not.toMatch(/secret message|another one|slk_/)
  await stored('one', 2)
})

it('links a chunk to the requests that it has, and a batch to its chunks', async () => {
  const callers = Array.from({ length: 6 }, () => makeCaller())
  const statuses = await Promise.all(callers.map(({ header }) => post('several', { traceparent: header })))
  expect(new Set(statuses)).toEqual(new Set([202]))
  await eventually(async () => {
    const spans = receiver.named(REQUEST)
    expect(spans.map(({ traceId }) => traceId).toSorted()).toEqual(callers.map(({ traceId }) => traceId))
    const chunks = receiver.named('chunk')
    // With requests that arrive together, at least one chunk has several.
    expect(chunks.length).toBeLessThan(callers.length)
    expect(chunks.flatMap(({ links }) => links).toSorted()).toEqual(
      spans.map(({ spanId }) => spanId).toSorted(),
    )
    for (const { spanId, links } of chunks)
      for (const { links: own } of spans.filter((span) => links.includes(span.spanId)))
        expect(own).toEqual([spanId])
    expect(
      receiver
        .named('batch')
        .flatMap(({ links }) => links)
        .toSorted(),
    ).toEqual(chunks.map(({ spanId }) => spanId).toSorted())
  })
  await stored('several', 12)
})

it('exports the last spans of a process that stops', async () => {
  const { api } = installation.processes
  expect(await post('last', { traceparent: makeCaller().header })).toBe(202)
  await api.stop()
  expect(await api.exited).toMatchObject({ code: 0 })
  only(REQUEST)
  await api.start()
  await stored('last', 2)
})

it('delays neither requests, inserts nor the end of a process while the endpoint is silent', async () => {
  receiver.mode = 'silent'
  const { api, worker } = installation.processes
  for (let sent = 0; sent < 300; sent += 1) {
    const startedMs = performance.now()
    expect(await post('silent', { traceparent: makeCaller().header })).toBe(202)
    expect(performance.now() - startedMs).toBeLessThan(1_000)
  }
  await stored('silent', 600)
  for (const process of [api, worker]) {
    const startedMs = performance.now()
    await process.stop()
    // A worker needs a part of a second for its connections.
    expect(performance.now() - startedMs).toBeLessThan(spanLimits.closeMaxMs + 1_500)
    expect(await process.exited).toMatchObject({ code: 0 })
    await process.start()
  }
})
