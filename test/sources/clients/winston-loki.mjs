import winston from 'winston'
import LokiTransport from 'winston-loki'
import { read } from './lines.mjs'

const transport = new LokiTransport({
  host: 'https://logs.example.com',
  basicAuth: 'sluice:slk_…',
  labels: { app: 'shop' },
  headers: { 'Sluice-Idempotency': 'body' },
  interval: 1,
})
const logger = winston.createLogger({ format: winston.format.simple(), transports: [transport] })
for await (const { message } of read()) logger.warn(message)
await transport.flush()
process.exit()
