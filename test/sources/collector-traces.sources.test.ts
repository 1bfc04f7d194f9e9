import { eventually, postLogs } from '@sluice/harness'
import { startTestServices } from '@sluice/harness/test-installation'
import { type Installation, startInstallation } from '@sluice/local'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Collector, COLLECTOR, startCollector } from './collector.ts'
import { isInstalled } from './programs.ts'

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
