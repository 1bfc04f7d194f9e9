const pino = require('pino')
const winston = require('winston')
const LokiTransport = require('winston-loki')

const { SLUICE_API_URL: host, SLUICE_API_KEY: password, SERVICE: service } = process.env
for (const json of [true, false]) {
  const transport = new LokiTransport({
    host,
    json,
    batching: false,
    basicAuth: `any:${password}`,
    labels: { service },
    onConnectionError: (error) => process.stdout.write(`failed: ${error}\n`),
  })
  const logger = winston.createLogger({ format: winston.format.simple(), transports: [transport] })
  logger.warn(json ? 'winston in JSON' : 'winston in Protocol Buffers')
}
// A line that is invalid among valid ones, in a batch.
const batched = new LokiTransport({
  host,
  interval: 1,
  replaceTimestamp: false,
  basicAuth: `any:${password}`,
  labels: { service: `${service}-batch` },
  format: winston.format.json(),
  headers: { 'Sluice-Loki-Lines': 'json' },
  onConnectionError: (error) => process.stdout.write(`failed: ${error}\n`),
})
// After an error it waits this long instead of a minute, and sends the batch once more.
batched.batcher.circuitBreakerInterval = 500
const logger = winston.createLogger({ transports: [batched] })
for (let order = 0; order < 100; order += 1)
  logger.info(`line ${order}`, order === 50 ? { timestamp: '2300-01-01' } : {})
const transport = pino.transport({
  target: 'pino-loki',
  options: {
    host,
    basicAuth: { username: 'any', password },
    labels: { service },
    batching: { interval: 1 },
    headers: { 'Sluice-Loki-Lines': 'json' },
  },
})
pino(transport).error({ order: 7 }, 'from pino')
// The transports send after their intervals, and when they end.
setTimeout(() => {
  batched.close()
  transport.end()
}, 5_000)
