import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { clickhouseAccess, httpAccess, readLocalServices, redisAccess } from '../src/service-access.ts'

const local = {
  apiUrl: 'http://127.0.0.1:3000',
  apiKey: 'slk_local',
  queryUrl: 'http://127.0.0.1:3001',
  readKey: 'slk_read',
  projectId: 'demo',
  redisUrl: 'redis://127.0.0.1:7001',
  clickhouse: { url: 'http://127.0.0.1:7002', username: 'sluice', password: 'secret', database: 'logs' },
}

let dataDirectory = ''
beforeEach(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'sluice-cli-'))
  await writeFile(join(dataDirectory, 'local.json'), JSON.stringify(local))
})
afterEach(async () => rm(dataDirectory, { recursive: true }))

const sources = (environment: Record<string, string> = {}) => ({ environment, dataDirectory })
const nowhere = { environment: {}, dataDirectory: join(tmpdir(), 'no-such-folder') }
const redisDefaults = { prefix: 'sluice', replicas: 0, memoryBytes: 1_073_741_824 }

describe('a setting comes', () => {
  test('from local.json by default', async () => {
    expect(await redisAccess({}, sources())).toEqual({ ...redisDefaults, url: local.redisUrl })
    expect(await clickhouseAccess({}, sources())).toEqual(local.clickhouse)
    expect(await httpAccess('api', {}, sources())).toEqual({ url: local.apiUrl, key: 'slk_local' })
    expect(await httpAccess('query', {}, sources())).toEqual({ url: local.queryUrl, key: 'slk_read' })
  })

  test('from the environment, which overrides local.json', async () => {
    const given = sources({
      REDIS_URL: 'rediss-sentinel://a,b/master',
      REDIS_TLS_CA_FILE: '/etc/ca.pem',
      REDIS_SENTINEL_PASSWORD: 'secret',
      SLUICE_PREFIX: 'mine',
      REDIS_REPLICAS_ACK: '1',
      REDIS_MEMORY_BYTES: '2000000',
      CLICKHOUSE_USERNAME: 'reader',
      SLUICE_API_KEY: 'slk_mine',
      SLUICE_QUERY_URL: 'https://logs',
      SLUICE_READ_KEY: 'slk_theirs',
    })
    expect(await redisAccess({}, given)).toEqual({
      url: 'rediss-sentinel://a,b/master',
      tlsCaFile: '/etc/ca.pem',
      sentinelPassword: 'secret',
      prefix: 'mine',
      replicas: 1,
      memoryBytes: 2_000_000,
    })
    expect(await clickhouseAccess({}, given)).toEqual({ ...local.clickhouse, username: 'reader' })
    expect(await httpAccess('api', {}, given)).toMatchObject({ key: 'slk_mine' })
    expect(await httpAccess('query', {}, given)).toEqual({ url: 'https://logs', key: 'slk_theirs' })
  })

  test('from a flag, which overrides the environment', async () => {
    const given = sources({ REDIS_URL: 'redis://elsewhere', CLICKHOUSE_USERNAME: 'reader' })
    const redis = { ...redisDefaults, url: 'redis://here', prefix: 'p' }
    expect(await redisAccess({ redisUrl: 'redis://here', prefix: 'p' }, given)).toEqual(redis)
    const flags = { clickhouseUsername: 'me', clickhouseDatabase: 'x' }
    const clickhouse = { ...local.clickhouse, username: 'me', database: 'x' }
    expect(await clickhouseAccess(flags, given)).toEqual(clickhouse)
  })
})

test('the credentials of the local services are not used with another address', async () => {
  const url = 'http://elsewhere:8123'
  const access = { url, username: 'default', password: '', database: 'sluice' }
  expect(await clickhouseAccess({}, sources({ CLICKHOUSE_URL: url }))).toEqual(access)
  await expect(httpAccess('api', { apiUrl: 'https://elsewhere' }, sources())).rejects.toThrow(
    'no key of the API is configured',
  )
  await expect(httpAccess('query', { queryUrl: 'https://elsewhere' }, sources())).rejects.toThrow(
    'and set SLUICE_READ_KEY',
  )
})

const secret = 'hunter2'
test.each([
  [
    () => redisAccess({}, nowhere),
    'start the local services with `npm start`, set REDIS_URL, or pass --redis-url',
  ],
  [() => clickhouseAccess({}, nowhere), 'set CLICKHOUSE_URL'],
  [() => httpAccess('api', {}, nowhere), 'set SLUICE_API_URL'],
  [() => redisAccess({ redisUrl: `http://u:${secret}@h` }, nowhere), 'the Redis URL must be redis://HOST'],
  [() => redisAccess({ redisUrl: 'redis://host', prefix: 'a b' }, nowhere), 'SLUICE_PREFIX'],
  [
    () => httpAccess('api', { apiUrl: `http://u:${secret}@h` }, nowhere),
    'must not contain a user or a password',
  ],
])('%o is rejected with advice and without a secret', async (access, reason) => {
  const error = await access().catch(String)
  expect(error).toContain(reason)
  expect(error).not.toContain(secret)
})

test('the ClickHouse with the tables of a Redis is in local.json only next to its Redis', async () => {
  const elsewhere = { url: 'redis://elsewhere' }
  expect(await clickhouseAccess({}, sources(), { url: local.redisUrl })).toEqual(local.clickhouse)
  await expect(clickhouseAccess({}, sources(), elsewhere)).rejects.toThrow(
    'no ClickHouse address is configured',
  )
  const given = sources({ CLICKHOUSE_URL: 'http://there:8123' })
  expect(await clickhouseAccess({}, given, elsewhere)).toMatchObject({ url: 'http://there:8123' })
})

test('local.json that cannot be read or is broken is reported', async () => {
  const path = join(dataDirectory, 'local.json')
  await expect(readLocalServices({ dataDirectory: path })).rejects.toThrow(/local\.json: not a directory$/)
  for (const content of ['{"apiUrl":', 'null', '']) {
    await writeFile(path, content)
    await expect(readLocalServices({ dataDirectory })).rejects.toThrow('is not a valid JSON object')
  }
})
