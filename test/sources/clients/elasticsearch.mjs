import { Client } from '@elastic/elasticsearch'

const { SLUICE_API_URL, SLUICE_API_KEY, SERVICE } = process.env
const client = new Client({ node: `${SLUICE_API_URL}/elasticsearch`, auth: { apiKey: SLUICE_API_KEY } })
const documents = Array.from({ length: 1_000 }, (_, i) => ({
  '@timestamp': new Date().toISOString(),
  message: `document ${i}`,
  log: { level: 'warning' },
  service: { name: SERVICE },
  // Too large.
  more: i === 500 ? 'x'.repeat(70_000) : undefined,
}))
const { successful, failed } = await client.helpers.bulk({
  datasource: documents,
  flushBytes: 20_000,
  onDocument: () => ({ create: { _index: 'shop' } }),
  onDrop: ({ status, error }) => process.stdout.write(`dropped: ${status} ${error.reason}\n`),
})
process.stdout.write(`${successful} stored, ${failed} failed\n`)
