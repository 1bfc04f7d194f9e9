import { SeverityNumber } from '@opentelemetry/api'
import { OTLPLogExporter as JsonExporter } from '@opentelemetry/exporter-logs-otlp-http'
import { OTLPLogExporter as ProtobufExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs'
import { describe, expect, it } from 'vitest'
import { LosingProxy } from './losing-proxy.ts'
import { Sources } from './sources.ts'

const RECORDS = 600

const sources = Sources.use()

const exporters = { protobuf: ProtobufExporter, JSON: JsonExporter } as const

/** Emits records with an exporter of OpenTelemetry, and resolves when they are exported. */
async function emit(form: keyof typeof exporters, url: string, service: string): Promise<void> {
  const headers = { authorization: `Bearer ${sources.installation.apiKey}`, 'sluice-idempotency': 'body' }
  const exporter = new exporters[form]({ url: `${url}/v1/logs`, headers })
  const provider = new LoggerProvider({
    resource: resourceFromAttributes({ 'service.name': service, 'deployment.environment.name': 'prod' }),
    processors: [
      new BatchLogRecordProcessor({ exporter, maxExportBatchSize: 250, maxQueueSize: RECORDS * 2 }),
    ],
  })
  const logger = provider.getLogger('checkout', '1.2.3')
  for (let i = 0; i < RECORDS; i += 1) {
    logger.emit({
      timestamp: Date.UTC(2026, 10, 20) + i,
      severityNumber: SeverityNumber.ERROR,
      severityText: 'ERROR',
      body: `declined ${i} "é"`,
      attributes: { cart: i, total: 9.99, tags: ['a', 'b'], 'exception.stacktrace': 'Error: x\n    at y' },
    })
  }
  await provider.shutdown()
}

describe.each(['protobuf', 'JSON'] as const)('the exporter of JavaScript for %s', (form) => {
  it('has its records stored with all parts', async () => {
    await emit(form, sources.installation.apiUrl, `js-${form}`)
    const entries = await sources.entriesOf(`js-${form}`, RECORDS)
    expect(entries).toHaveLength(RECORDS)
    expect(entries[7]).toMatchObject({
      timestamp: '2026-11-20 00:00:00.007000',
      level: 'error',
      message: 'declined 7 "é"',
      environment: 'production',
      stack: 'Error: x\n    at y',
      metadata: {
        attributes: { cart: 7, total: 9.99, tags: ['a', 'b'] },
        resource: { 'deployment.environment.name': 'prod' },
        scope: { name: 'checkout', version: '1.2.3' },
        observed_time_unix_nano: expect.stringMatching(/^\d{19}$/) as unknown,
      },
    })
  })

  it('has its records stored once if a response is lost', async () => {
    // Not all exporters retry if their connection is closed.
    const losses = { every: Infinity, instead: 503 } as const
    await using proxy = await LosingProxy.open(sources.installation.apiUrl, losses)
    await emit(form, proxy.url, `js-${form}-lost`)
    expect(proxy.statuses.toSorted()).toEqual(['200', '200', '200', '200 replayed'])
    expect(await sources.entriesOf(`js-${form}-lost`, RECORDS)).toHaveLength(RECORDS)
  })
})
