import type { AddressInfo } from 'node:net'
import { buildTestApi } from './test-api.ts'

/** An API in a separate process. It sends its port to the test, and its resident memory as the reply to each message. */
const api = buildTestApi()
await api.app.listen({ host: '127.0.0.1', port: 0, backlog: 1_024 })
process.on('message', () => {
  globalThis.gc?.()
  process.send?.({ residentBytes: process.memoryUsage.rss() })
})
process.send?.({ port: (api.app.server.address() as AddressInfo).port, key: api.key })
