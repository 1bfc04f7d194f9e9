// Sends log records to Sluice with the OpenTelemetry SDK. The exporter reads its address and headers from the environment.
import { SeverityNumber } from '@opentelemetry/api'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs'

const provider = new LoggerProvider({
  resource: resourceFromAttributes({
    'service.name': process.env.SERVICE ?? 'checkout',
    'deployment.environment.name': 'production',
  }),
  processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter() })],
})
const logger = provider.getLogger('payment')

logger.emit({
  severityNumber: SeverityNumber.INFO,
  severityText: 'INFO',
  body: 'Order 4711 accepted',
  attributes: { 'order.id': 4711, 'user.id': 'ada' },
})
try {
  JSON.parse('{')
} catch (error) {
  logger.emit({
    severityNumber: SeverityNumber.ERROR,
    body: 'Payment failed',
    attributes: { 'exception.type': error.name, 'exception.stacktrace': error.stack },
  })
}

// Sends what is left.
await provider.shutdown()
