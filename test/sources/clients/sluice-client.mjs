import { SluiceClient } from '@sluice/client'
import { read } from './lines.mjs'

const client = new SluiceClient({ url: 'https://logs.example.com', apiKey: 'slk_…', service: 'shop' })
for await (const { message } of read()) client.warn(message)
await client.close({ timeoutMs: 30_000 })
