const { ElasticsearchTransport, ElasticsearchTransformer } = require('winston-elasticsearch')
const SplunkTransport = require('winston-splunk-httplogger')
const winston = require('winston')

const { SLUICE_API_URL: url, SLUICE_API_KEY: token, SERVICE: service } = process.env
const elastic = new ElasticsearchTransport({
  clientOpts: { node: `${url}/elasticsearch`, auth: { apiKey: token } },
  flushInterval: 100,
  // The index of an error is invalid.
  transformer: (record) => ({
    ...ElasticsearchTransformer(record),
    ...(record.level === 'error' ? { indexInterfix: 'A' } : {}),
  }),
})
const splunk = new SplunkTransport({ splunk: { token, url } })
const logger = winston.createLogger({ transports: [elastic, splunk] })
logger.warn('from winston', { service, environment: 'prod', order: 7 })
elastic.log({ level: 'error', message: 'not stored', service }, () => {})
setTimeout(() => logger.end(), 2_000)
