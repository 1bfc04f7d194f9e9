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
const transport = pino.transport({
  target: 'pino-loki',
  options: { host, basicAuth: { username: 'any', password }, labels: { service }, batching: { interval: 1 } },
})
pino(transport).error({ order: 7 }, 'from pino')
// The transport sends after its interval, when the logger ends.
setTimeout(() => transport.end(), 2_000)
