import { eventually, postLogs } from '@sluice/harness'
import { startTestServices } from '@sluice/harness/test-installation'
import { type Installation, startInstallation } from '@sluice/local'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Collector, COLLECTOR, startCollector } from './collector.ts'
import { isInstalled } from './programs.ts'
import { numbered, Sources } from './sources.ts'

const RECORDS = 1_000
/** Longer than Sluice accepts. */
const LONG_MESSAGE = 'x'.repeat(70_000)

describe.skipIf(!isInstalled(COLLECTOR))('a Collector with its example, if it is on the PATH', () => {
  const sources = Sources.use()
  let collector: Collector

  beforeAll(async () => {
    const { supervisor, apiUrl, apiKey } = sources.installation
    collector = await startCollector(supervisor, {
      example: 'otel-collector/config.yaml',
      replacements: { 'https://logs.example.com': apiUrl },
      environment: { SLUICE_API_KEY: apiKey },
    })
  })

  /** Sends records to the Collector. @returns its status */
  async function send(service: string, messages: readonly string[]): Promise<number> {
    const logRecords = messages.map((stringValue) => ({ severityNumber: 13, body: { stringValue } }))
    const attributes = [{ key: 'service.name', value: { stringValue: service } }]
    const response = await fetch(`${collector.url}/v1/logs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ resourceLogs: [{ resource: { attributes }, scopeLogs: [{ logRecords }] }] }),
    })
    await response.body?.cancel()
    return response.status
  }

  it('keeps records on disk over its own crash while the API is down, and sends each of them', async () => {
    await sources.killApi()
    expect(await send('collector-crash', numbered(0, RECORDS))).toBe(200)
    await collector.process.stop({ signal: 'SIGKILL' })
    await collector.process.start()
    expect(await send('collector-crash', numbered(RECORDS, RECORDS))).toBe(200)
    await sources.startApi()
    const entries = await sources.entriesOf('collector-crash', 2 * RECORDS)
    expect(entries.length).toBeGreaterThanOrEqual(2 * RECORDS)
  })

  it('sends the other records of a request in which Sluice rejects one', async () => {
    const service = 'collector-rejected'
    expect(await send(service, ['before', LONG_MESSAGE, 'after'])).toBe(200)
    const entries = await sources.entriesOf(service, 2)
    expect(entries.map(({ level, message }) => ({ level, message }))).toEqual([
      { level: 'warn', message: 'after' },
      { level: 'warn', message: 'before' },
    ])
  })
})

describe.skipIf(!isInstalled(COLLECTOR))('traces of Sluice in a Collector, if it is on the PATH', () => {
  let installation: Installation
  let collector: Collector

  beforeAll(async () => {
    const services = await startTestServices()
    collector = await startCollector(services.supervisor, { example: 'otel-collector/traces.yaml' })
    const environment = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` }
    installation = await startInstallation({ services, api: { environment }, worker: { environment } })
  })

  afterAll(async () => {
    await installation?.stop({ force: true })
  })

  /** The spans that the Collector has printed: the lines of each. */
  const spans = (): string[] =>
    readFileSync(collector.process.logFile, 'utf8')
      .split(/^Span #\d+$/m)
      .slice(1)

  it('have a request as part of its caller, its chunk, the batch and the insert', async () => {
    const traceId = 'abcdef0123456789abcdef0123456789'
    const traceparent = `00-${traceId}-0123456789abcdef-01`
    const { status } = await postLogs(installation, { level: 'info', message: 'traced' }, { traceparent })
    expect(status).toBe(202)
    await eventually(async () => {
      expect(spans().map((span) => /Name +: (.*)/.exec(span)?.[1])).toEqual(
        expect.arrayContaining(['POST /v1/logs', 'chunk', 'batch', 'insert']),
      )
    })
    const request = spans().find((span) => span.includes('POST /v1/logs'))
    expect(request).toContain(traceId)
    expect(request).toMatch(/Parent ID +: 0123456789abcdef/)
    expect(request).toMatch(/Kind +: Server/)
    expect(request).toContain('http.response.status_code: Int(202)')
    const chunk = spans().find((span) => /Name +: chunk/.test(span))
    expect(chunk).toContain('sluice.chunk.rows: Int(1)')
    expect(chunk).toContain(`Trace ID: ${traceId}`)
  })
})
