import { eventually, postLogs } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'
import { OtlpReceiver, type ReceivedSpan } from '@sluice/harness/otlp-receiver'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { afterAll, beforeAll, expect, it } from 'vitest'

const REQUEST = 'POST /v1/logs'

let receiver: OtlpReceiver
let installation: Installation

beforeAll(async () => {
  receiver = await OtlpReceiver.open()
  const environment = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: receiver.url }
  installation = await startTestInstallation({
    // Without a traceparent, a request is not traced.
    api: { environment: { ...environment, OTEL_TRACES_SAMPLER_ARG: '0' } },
    worker: { environment },
  })
})

afterAll(async () => {
  await installation?.stop()
  await receiver?.close()
})

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

/** The one received span with this name. */
function only(name: string): ReceivedSpan {
  expect(receiver.named(name)).toHaveLength(1)
  return receiver.named(name)[0] as ReceivedSpan
}

it('follows a request from its caller to the batch of its rows', async () => {
  const [callerTraceId, callerSpanId] = ['1'.repeat(32), '2'.repeat(16)]
  const traceparent = `00-${callerTraceId}-${callerSpanId}-01`
  const status = await post('one', { traceparent, 'x-request-id': 'the-request' })
  expect(status).toBe(202)
  await eventually(async () => {
    const names = receiver.spans.map(({ name }) => name)
    expect(names.toSorted()).toEqual([REQUEST, 'batch', 'chunk'])
  })
  const [request, chunk, batch] = [only(REQUEST), only('chunk'), only('batch')]
  expect(request).toMatchObject({
    service: 'sluice-api',
    traceId: callerTraceId,
    parentSpanId: callerSpanId,
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
  expect(new Set([request, chunk, batch].map(({ traceId }) => traceId)).size).toBe(3)
  expect(receiver.spans.filter(({ isError }) => isError)).toEqual([])
  expect(chunk.startMs).toBeGreaterThanOrEqual(request.startMs)
  expect(JSON.stringify(receiver.spans)).not.toMatch(/secret message|another one|slk_/)
  await stored('one', 2)
})
