import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { describePort, welcome } from '../src/local-run.ts'

test.each([
  ['127.0.0.1', 3000, 'EADDRINUSE', 'PORT=3001 npm start'],
  ['127.0.0.1', 65_535, 'EADDRINUSE', 'PORT=3000 npm start'],
  ['127.0.0.1', 80, 'EACCES', 'PORT=3000 npm start'],
  ['192.0.2.1', 3000, 'EADDRNOTAVAIL', 'HOST=127.0.0.1 npm start'],
  ['no.such.host', 3000, 'ENOTFOUND', 'HOST=127.0.0.1 npm start'],
])('the remedy for %s:%i and %s is %s', (host, port, code, remedy) => {
  expect(describePort(host, port, code)).toMatch(new RegExp(`${remedy}$`))
})

test('the printed commands quote the data directory, unless it is the default one, and have no key that others may read', () => {
  const local = {
    apiUrl: 'http://127.0.0.1:3000',
    apiKey: 'slk_x',
    projectId: 'demo',
    redisUrl: 'redis://127.0.0.1:4001',
    clickhouse: { url: 'http://127.0.0.1:4002', username: 'sluice', password: 'p', database: 'sluice' },
    opsUrls: { api: 'http://127.0.0.1:4003', worker: 'http://127.0.0.1:4004' },
  }
  const defaultDir = fileURLToPath(new URL('../../../.data', import.meta.url))
  expect(welcome(local, defaultDir, false)).toContain(' ./sluice logs --project demo')
  expect(welcome(local, "/it's here", false)).toContain(
    String.raw`SLUICE_DATA_DIR='/it'\''s here' ./sluice logs --project demo --follow`,
  )
  // The key is only in local.json.
  expect(welcome(local, defaultDir, true)).not.toContain('slk_x')
})
