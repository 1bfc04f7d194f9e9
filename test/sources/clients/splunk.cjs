const { Logger } = require('splunk-logging')

const { SLUICE_API_URL: url, SLUICE_API_KEY: token, SERVICE: service } = process.env
const logger = new Logger({ token, url })
logger.send(
  {
    message: { msg: 'from splunk-logging', service, order: 7 },
    severity: 'warn',
    metadata: { source: 'till', host: 'h' },
  },
  (error, _response, body) => process.stdout.write(`${error ?? body.text}\n`),
)
