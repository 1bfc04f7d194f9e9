import type { AddressInfo } from 'node:net'
import { buildTestApi } from './test-api.ts'

/** An API in a process of its own, whose memory a test can look at: says where it listens, and answers with its bytes. */
const api = buildTestApi()
await api.app.listen({ host: '127.0.0.1', port: 0, backlog: 1_024 })
process.on('message', () => {
  globalThis.gc?.()
  process.send?.({ residentBytes: process.memoryUsage.rss() })
})
process.send?.({ port: (api.app.server.address() as AddressInfo).port, key: api.key })
