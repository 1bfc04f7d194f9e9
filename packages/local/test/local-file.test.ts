import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type LocalFile, readEarlier, writeLocalFile } from '../src/local-file.ts'

const local: LocalFile = {
  apiUrl: 'http://127.0.0.1:3000',
  apiKey: 'slk_x',
  projectId: 'demo',
  redisUrl: 'redis://:pass_-9@127.0.0.1:4001',
  clickhouse: { url: 'http://127.0.0.1:4002', username: 'sluice', password: 'p', database: 'sluice' },
  opsUrls: { api: 'http://127.0.0.1:4003', worker: 'http://127.0.0.1:4004' },
}

let dataDir: string

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-local-file-'))
})
afterEach(() => rmSync(dataDir, { recursive: true }))

test('a later start uses the ports, passwords and key of the earlier one', () => {
  writeLocalFile(dataDir, local)
  expect(readEarlier(dataDir)).toEqual({
    apiUrl: 'http://127.0.0.1:3000',
    apiKey: 'slk_x',
    redis: { port: 4001, password: 'pass_-9' },
    clickhouse: { port: 4002, password: 'p' },
    opsPorts: { api: 4003, worker: 4004 },
  })
})

test('only the owner may read the file, and no temporary file remains', () => {
  writeLocalFile(dataDir, local)
  expect(statSync(join(dataDir, 'local.json')).mode & 0o777).toBe(0o600)
  expect(readdirSync(dataDir)).toEqual(['local.json'])
})

test.each([undefined, '', '{', 'null', '{}', '{"apiKey":"slk_x","redisUrl":"nonsense"}'])(
  'a missing or invalid file is ignored: %s',
  (content) => {
    if (content !== undefined) writeFileSync(join(dataDir, 'local.json'), content)
    expect(readEarlier(dataDir)).toEqual({})
  },
)
