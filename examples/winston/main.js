// Logs with winston, to Sluice and to the terminal. SLUICE_API_URL and SLUICE_API_KEY are in the environment.
import { once } from 'node:events'
import { SluiceClient } from '@sluice/client'
import winston from 'winston'
import { SluiceTransport } from './sluice-transport.js'

const client = new SluiceClient({
  url: process.env.SLUICE_API_URL,
  apiKey: process.env.SLUICE_API_KEY,
  service: 'checkout',
  environment: 'production',
  source: 'server',
})
const logger = winston.createLogger({
  level: 'debug',
  format: winston.format.errors({ stack: true }),
  transports: [
    new SluiceTransport({ client }),
    new winston.transports.Console({ level: 'info', format: winston.format.cli() }),
  ],
})

const request = logger.child({ requestId: 'r-1' })
request.debug('Connecting')
request.info('Order accepted', { order: { id: 4711, total: 12.5 } })
request.http('POST /orders')
try {
  JSON.parse('{')
} catch (error) {
  request.error(error)
}

// The transport sends the rest before the logger finishes.
logger.end()
await once(logger, 'finish')
