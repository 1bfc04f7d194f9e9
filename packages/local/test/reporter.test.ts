import { expect, test } from 'vitest'
import type { LocalFile } from '../src/local-file.ts'
import { curlCommand, logsCommand, playUrl, Reporter, sendCommand } from '../src/reporter.ts'

const local: LocalFile = {
  apiUrl: 'http://127.0.0.1:3000',
  apiKey: 'slk_x',
  projectId: 'demo',
  redisUrl: 'redis://:r@127.0.0.1:4001',
  clickhouse: { url: 'http://127.0.0.1:4002', username: 'sluice', password: 'a&b #c', database: 'sluice' },
  opsUrls: { api: 'http://127.0.0.1:4003', worker: 'http://127.0.0.1:4004' },
}

test('the URL of the query page contains the credentials, and the query in its hash', () => {
  const url = new URL(playUrl(local))
  expect(url.origin + url.pathname).toBe('http://127.0.0.1:4002/play')
  expect(Object.fromEntries(url.searchParams)).toEqual({ user: 'sluice', password: 'a&b #c', run: '1' })
  const query = Buffer.from(url.hash.slice(1), 'base64').toString()
  expect(query).toContain("FROM sluice.logs\nWHERE project_id = 'demo'")
})

test('the curl command is one line and contains the key', () => {
  expect(curlCommand(local)).toMatch(/^curl .*http:\/\/127\.0\.0\.1:3000\/v1\/logs .*Bearer slk_x/)
})

test('the logs command sets the data directory unless it is the default one', () => {
  expect(logsCommand(local, undefined)).toBe('./sluice logs --project demo --follow')
  expect(logsCommand(local, "/it's here")).toBe(
    String.raw`SLUICE_DATA_DIR='/it'\''s here' ./sluice logs --project demo --follow`,
  )
})

test('the send command takes the key from the data directory', () => {
  expect(sendCommand(undefined)).toBe("echo 'Hello, Sluice' | ./sluice send")
})

test.each([
  ['contains the key and the password', false],
  ['contains neither the key nor a password if others may read it', true],
])('the welcome %s', (_what, hidesSecrets) => {
  let output = ''
  const reporter = new Reporter((text) => (output += text), { colours: false, hidesSecrets })
  const secret = { ...local, apiKey: 'slk_secret', clickhouse: { ...local.clickhouse, password: 'hidden' } }
  reporter.welcome(secret, { dataDir: '/data', isDefaultDataDir: false })
  expect(output.includes('slk_secret')).toBe(!hidesSecrets)
  expect(output.includes('hidden')).toBe(!hidesSecrets)
  expect(output.includes("echo 'Hello, Sluice' | SLUICE_DATA_DIR='/data' ./sluice send")).toBe(hidesSecrets)
  expect(output).toContain("SLUICE_DATA_DIR='/data' ./sluice logs --project demo --follow")
})
