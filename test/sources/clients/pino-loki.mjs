import pino from 'pino'
import { read } from './lines.mjs'

const transport = pino.transport({
  target: 'pino-loki',
  options: {
    host: 'https://logs.example.com',
    basicAuth: { username: 'sluice', password: 'slk_…' },
    labels: { app: 'shop' },
    headers: { 'Sluice-Idempotency': 'body' },
    batching: { interval: 1 },
  },
})
const logger = pino(transport)
for await (const { message } of read()) logger.warn(message)
// The transport sends after its interval, when the logger ends.
setTimeout(() => transport.end(), 2_000)
