// Loaded before the program: `node --import ./instrumentation.js main.js`.
import { register } from 'node:module'
import { logs } from '@opentelemetry/api'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import { registerInstrumentations } from '@opentelemetry/instrumentation'
import { PinoInstrumentation } from '@opentelemetry/instrumentation-pino'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs'

// Without it, only packages that are loaded with `require` are instrumented.
register('@opentelemetry/instrumentation/hook.mjs', import.meta.url)

const exporter = new OTLPLogExporter({
  url: `${process.env.SLUICE_API_URL}/v1/logs`,
  headers: { Authorization: `Bearer ${process.env.SLUICE_API_KEY}` },
})
export const loggerProvider = new LoggerProvider({
  resource: resourceFromAttributes({
    'service.name': 'checkout',
    'deployment.environment.name': 'production',
  }),
  processors: [new BatchLogRecordProcessor({ exporter })],
})
logs.setGlobalLoggerProvider(loggerProvider)
registerInstrumentations({ instrumentations: [new PinoInstrumentation()] })
