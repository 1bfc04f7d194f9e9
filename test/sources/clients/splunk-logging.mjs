import splunk from 'splunk-logging'
import { read } from './lines.mjs'

const logger = new splunk.Logger({
  url: 'https://logs.example.com',
  token: 'slk_…',
  maxRetries: 12,
  batchInterval: 1_000,
  maxBatchCount: 100,
})
logger.requestOptions.headers = { 'Sluice-Idempotency': 'body' }
for await (const record of read())
  logger.send({ message: { ...record, service: 'shop' }, severity: 'warn', metadata: { source: 'till' } })
logger.config.batchInterval = 0
// Batches that are retried are not a part of the flush.
logger.flush(() => setTimeout(() => process.exit(), 20_000))
