import { Client } from '@elastic/elasticsearch'
import { read } from './lines.mjs'

const records = read()
const report = ({ status, error }) => process.stdout.write(`dropped: ${status} ${error.reason}\n`)

const client = new Client({
  node: 'https://logs.example.com/elasticsearch',
  auth: { apiKey: 'slk_…' },
  headers: { 'sluice-idempotency': 'body' },
  maxRetries: 20,
})
await client.helpers.bulk({
  datasource: records,
  flushInterval: 1_000,
  onDocument: () => ({ create: { _index: 'logs' } }),
  onDrop: report,
})
