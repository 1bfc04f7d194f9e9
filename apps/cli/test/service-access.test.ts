import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { apiAccess, clickhouseAccess, readLocalServices, redisAccess } from '../src/service-access.ts'

const local = {
  apiUrl: 'http://127.0.0.1:3000',
  apiKey: 'slk_local',
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

const redisDefaults = { prefix: 'sluice', replicas: 0, memoryBytes: 1_073_741_824 }

describe('a setting comes', () => {
  test('from local.json by default', async () => {
    const sources = { environment: {}, dataDirectory }
    expect(await redisAccess({}, sources)).toEqual({ ...redisDefaults, url: local.redisUrl })
    expect(await clickhouseAccess({}, sources)).toEqual(local.clickhouse)
    expect(await apiAccess({}, sources)).toEqual({ url: 'http://127.0.0.1:3000/v1/logs', key: 'slk_local' })
  })

  test('from the environment, which overrides local.json', async () => {
    const environment = {
      REDIS_URL: 'rediss-sentinel://a,b/master',
      REDIS_TLS_CA_FILE: '/etc/ca.pem',
      REDIS_SENTINEL_PASSWORD: 'secret',
      SLUICE_PREFIX: 'mine',
      REDIS_REPLICAS_ACK: '1',
      REDIS_MEMORY_BYTES: '2000000',
      CLICKHOUSE_USERNAME: 'reader',
      SLUICE_API_KEY: 'slk_mine',
    }
    const sources = { environment, dataDirectory }
    expect(await redisAccess({}, sources)).toEqual({
      url: 'rediss-sentinel://a,b/master',
      tlsCaFile: '/etc/ca.pem',
      sentinelPassword: 'secret',
      prefix: 'mine',
      replicas: 1,
      memoryBytes: 2_000_000,
    })
    expect(await clickhouseAccess({}, sources)).toEqual({ ...local.clickhouse, username: 'reader' })
    expect(await apiAccess({}, sources)).toMatchObject({ key: 'slk_mine' })
  })

  test('from a flag, which overrides the environment', async () => {
    const environment = { REDIS_URL: 'redis://elsewhere', CLICKHOUSE_USERNAME: 'reader' }
    const sources = { environment, dataDirectory }
    const redis = await redisAccess({ redisUrl: 'redis://here', prefix: 'p' }, sources)
    expect(redis).toEqual({ ...redisDefaults, url: 'redis://here', prefix: 'p' })
    const clickhouse = await clickhouseAccess({ clickhouseUsername: 'me', clickhouseDatabase: 'x' }, sources)
    expect(clickhouse).toEqual({ ...local.clickhouse, username: 'me', database: 'x' })
  })
})

describe('the credentials of the local services are not used with another address', () => {
  test('the ClickHouse user and password', async () => {
    const sources = { environment: { CLICKHOUSE_URL: 'http://elsewhere:8123' }, dataDirectory }
    expect(await clickhouseAccess({}, sources)).toEqual({
      url: 'http://elsewhere:8123',
      username: 'default',
      password: '',
      database: 'sluice',
    })
  })

  test('the API key', async () => {
    const access = apiAccess({ apiUrl: 'https://elsewhere' }, { environment: {}, dataDirectory })
    await expect(access).rejects.toThrow('no API key is configured')
  })
})

describe('rejects with advice', () => {
  const nowhere = { environment: {}, dataDirectory: join(tmpdir(), 'no-such-folder') }

  test('a service without an address', async () => {
    await expect(redisAccess({}, nowhere)).rejects.toThrow(
      'no Redis address is configured: start the local services with `npm start`, set REDIS_URL, or pass --redis-url',
    )
    await expect(clickhouseAccess({}, nowhere)).rejects.toThrow('set CLICKHOUSE_URL')
    await expect(apiAccess({}, nowhere)).rejects.toThrow('set SLUICE_API_URL')
  })

  test('an address with another scheme, without printing it', async () => {
    const error = await redisAccess({ redisUrl: 'http://user:secret@host' }, nowhere).catch(String)
    expect(error).toContain('must start with redis:// or rediss://')
    expect(error).not.toContain('secret')
  })

  test('a malformed prefix', async () => {
    const access = redisAccess({ redisUrl: 'redis://host', prefix: 'a b' }, nowhere)
    await expect(access).rejects.toThrow('SLUICE_PREFIX')
  })
})

test.each([
  ['http://host:3000', 'http://host:3000/v1/logs'],
  ['http://host:3000/', 'http://host:3000/v1/logs'],
  ['https://host/v1', 'https://host/v1/logs'],
  ['https://host/api/v1/', 'https://host/api/v1/logs'],
])('the logs resource of %s is %s', async (apiUrl, url) => {
  expect(await apiAccess({ apiUrl, apiKey: 'slk_x' }, { environment: {}, dataDirectory })).toMatchObject({
    url,
  })
})

test('an address of the API with a password is rejected without printing the password', async () => {
  const environment = { SLUICE_API_URL: 'http://user:hunter2@127.0.0.1:3000', SLUICE_API_KEY: 'slk_mine' }
  const access = apiAccess({}, { environment, dataDirectory })
  await expect(access).rejects.toThrow('must not contain a user or a password')
  await expect(access).rejects.not.toThrow('hunter2')
})

describe('the ClickHouse with the tables of a Redis', () => {
  test('is in local.json only next to its Redis', async () => {
    const sources = { environment: {}, dataDirectory }
    expect(await clickhouseAccess({}, sources, { url: local.redisUrl })).toEqual(local.clickhouse)
    await expect(clickhouseAccess({}, sources, { url: 'redis://elsewhere' })).rejects.toThrow(
      'no ClickHouse address is configured',
    )
  })

  test('is the configured one next to any Redis', async () => {
    const sources = { environment: { CLICKHOUSE_URL: 'http://there:8123' }, dataDirectory }
    expect(await clickhouseAccess({}, sources, { url: 'redis://elsewhere' })).toMatchObject({
      url: 'http://there:8123',
    })
  })
})

describe('local.json', () => {
  test('is not needed where `npm start` never ran', async () => {
    expect(await readLocalServices({ dataDirectory: join(dataDirectory, 'none') })).toEqual({})
  })

  test('that cannot be read is reported', async () => {
    await writeFile(join(dataDirectory, 'file'), '')
    const reading = readLocalServices({ dataDirectory: join(dataDirectory, 'file') })
    await expect(reading).rejects.toThrow(/^cannot read .*local\.json: .* is not a directory$/)
  })

  test.each(['{"apiUrl":', 'null', ''])('that is broken is reported: %j', async (content) => {
    await writeFile(join(dataDirectory, 'local.json'), content)
    await expect(readLocalServices({ dataDirectory })).rejects.toThrow(
      'local.json is not a valid JSON object',
    )
  })
})
