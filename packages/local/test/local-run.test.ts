import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  describeFullDisk,
  describePort,
  type LocalFile,
  readEarlier,
  welcome,
  writeLocalFile,
} from '../src/local-run.ts'

const local: LocalFile = {
  apiUrl: 'http://127.0.0.1:3000',
  apiKey: 'slk_x',
  queryUrl: 'http://127.0.0.1:3001',
  readKey: 'slk_y',
  projectId: 'demo',
  redisUrl: 'redis://:pass_-9@127.0.0.1:4001',
  clickhouse: { url: 'http://127.0.0.1:4002', username: 'sluice', password: 'p', database: 'sluice' },
  opsUrls: { api: 'http://127.0.0.1:4003', worker: 'http://127.0.0.1:4004', query: 'http://127.0.0.1:4005' },
}

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-local-file-'))
})
afterEach(() => rmSync(dataDir, { recursive: true }))

test('a later start uses the ports, passwords and key of the earlier one, from a file that only the owner may read', () => {
  writeLocalFile(dataDir, local)
  expect(readEarlier(dataDir)).toEqual({
    apiUrl: 'http://127.0.0.1:3000',
    project: { projectId: 'demo', apiKey: 'slk_x', readKey: 'slk_y' },
    queryPort: 3001,
    redis: { port: 4001, password: 'pass_-9' },
    clickhouse: { port: 4002, password: 'p' },
    opsPorts: { api: 4003, worker: 4004, query: 4005 },
  })
  expect(statSync(join(dataDir, 'local.json')).mode & 0o777).toBe(0o600)
  expect(readdirSync(dataDir)).toEqual(['local.json'])
})

test.each([undefined, '{', 'null', '{}', '{"apiKey":"slk_x","redisUrl":"nonsense"}'])(
  'a missing or invalid file is ignored: %s',
  (content) => {
    if (content !== undefined) writeFileSync(join(dataDir, 'local.json'), content)
    expect(readEarlier(dataDir)).toEqual({})
  },
)

test.each([
  [3000, 'PORT=3001 npm start'],
  [65_535, 'PORT=3000 npm start'],
  [80, 'PORT=3000 npm start'],
])('the remedy for the port %i is %s', (port, remedy) => {
  expect(describePort('127.0.0.1', port, 'EADDRINUSE')).toMatch(new RegExp(`${remedy}$`))
})

test.each([
  [['redis-server'], ''],
  [['valkey-server'], ''],
  [['apt-get', 'dpkg-deb'], ''],
  [['apt-get'], '✗ Redis was not found. Install it with'],
])('with %j on the PATH, the check of the machine prints "%s"', (programs, printed) => {
  for (const program of programs) writeFileSync(join(dataDir, program), '')
  const check = fileURLToPath(new URL('../../../tools/check-machine.mjs', import.meta.url))
  const env = { PATH: `/no/such/folder:${dataDir}` }
  const { stdout, status } = spawnSync(process.execPath, [check], { env, encoding: 'utf8' })
  expect(stdout.slice(0, 38)).toBe(printed)
  expect(status).toBe(printed === '' ? 0 : 1)
})

test('the printed commands quote the data directory, unless it is the default one, and have no key that others may read', () => {
  const defaultDir = fileURLToPath(new URL('../../../.data', import.meta.url))
  expect(welcome(local, defaultDir, false)).toContain(' ./sluice logs --follow')
  expect(welcome(local, "/it's here", false)).toContain(
    String.raw`SLUICE_DATA_DIR='/it'\''s here' ./sluice logs --follow`,
  )
  expect(welcome(local, defaultDir, true)).not.toContain('slk_')
})

test.each([
  ['/data', '/data', 5_900_000],
  ['/data/clickhouse', '/data/clickhouse', 0],
  ['/data/redis', '/data/redis', 67_000_000],
])('a full disk below %s is named, with what is free', (full, named, bytes) => {
  const found = describeFullDisk('/data', (folder) => (folder === full ? bytes : 10 ** 9))
  expect(found).toMatch(`The disk of ${named} is full (${Math.floor(bytes / 1e6)} MB free). Free some space`)
})

test('a disk with space is no problem, nor is a folder that does not exist', () => {
  expect(describeFullDisk('/data', () => 10 ** 9)).toBeUndefined()
  for (const folder of ['/no/such/folder', '/proc/x']) expect(describeFullDisk(folder)).toBeUndefined()
})
