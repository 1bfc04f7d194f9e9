// Logs with pino, to the terminal and through the SDK of OpenTelemetry to Sluice. SLUICE_API_URL and SLUICE_API_KEY are in the environment.
import { pino } from 'pino'
import { loggerProvider } from './instrumentation.js'

const logger = pino({ level: 'debug' })

const request = logger.child({ requestId: 'r-1' })
request.debug('Connecting')
request.info({ order: { id: 4711, total: 12.5 } }, 'Order accepted')
try {
  JSON.parse('{')
} catch (error) {
  request.error(error, 'Answer of the bank is invalid')
}

// The SDK sends batches. What is left is sent here.
await loggerProvider.shutdown()
