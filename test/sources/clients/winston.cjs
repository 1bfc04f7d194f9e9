const { ElasticsearchTransport, ElasticsearchTransformer } = require('winston-elasticsearch')
const SplunkTransport = require('winston-splunk-httplogger')
const winston = require('winston')

const { SLUICE_API_URL: url, SLUICE_API_KEY: token, SERVICE: service } = process.env
const splunk = new SplunkTransport({ splunk: { token, url } })
winston.createLogger({ transports: [splunk] }).warn('to Splunk', { service, environment: 'prod', order: 7 })
const elastic = new ElasticsearchTransport({
  clientOpts: { node: `${url}/elasticsearch`, auth: { apiKey: token } },
  flushInterval: 100,
  // The index of an error is invalid.
  transformer: (record) => ({
    ...ElasticsearchTransformer(record),
    ...(record.level === 'error' ? { indexInterfix: 'A' } : {}),
  }),
})
// The first is sent alone, and the others together.
for (const level of ['info', 'error', 'warn'])
  elastic.log({ level, message: `to Elasticsearch: ${level}`, service, environment: 'prod' }, () => {})
