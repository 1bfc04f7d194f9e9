import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { apiAccess, clickhouseAccess, logsUrl, redisAccess, shownUrl } from '../src/connections.ts'

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

describe('a setting comes', () => {
  test('from local.json', async () => {
    const around = { environment: {}, dataDirectory }
    expect(await redisAccess({}, around)).toEqual({ url: local.redisUrl, prefix: 'sluice' })
    expect(await clickhouseAccess({}, around)).toEqual(local.clickhouse)
    expect(await apiAccess({}, around)).toEqual({ url: 'http://127.0.0.1:3000/v1/logs', key: 'slk_local' })
  })

  test('rather from the environment', async () => {
    const environment = {
      REDIS_URL: 'redis://elsewhere',
      SLUICE_PREFIX: 'mine',
      CLICKHOUSE_USERNAME: 'reader',
      SLUICE_API_KEY: 'slk_mine',
    }
    const around = { environment, dataDirectory }
    expect(await redisAccess({}, around)).toEqual({ url: 'redis://elsewhere', prefix: 'mine' })
    expect(await clickhouseAccess({}, around)).toEqual({ ...local.clickhouse, username: 'reader' })
    expect(await apiAccess({}, around)).toMatchObject({ key: 'slk_mine' })
  })

  test('best from a flag', async () => {
    const around = { environment: { REDIS_URL: 'redis://elsewhere' }, dataDirectory }
    expect(await redisAccess({ redisUrl: 'redis://here', prefix: 'p' }, around)).toEqual({
      url: 'redis://here',
      prefix: 'p',
    })
  })
})

describe('what is known of the local services stays with them', () => {
  test('ClickHouse: user and password', async () => {
    const around = { environment: { CLICKHOUSE_URL: 'http://elsewhere:8123' }, dataDirectory }
    expect(await clickhouseAccess({}, around)).toEqual({
      url: 'http://elsewhere:8123',
      username: 'default',
      password: '',
      database: 'sluice',
    })
  })

  test('API: the key', async () => {
    const access = apiAccess({ apiUrl: 'https://elsewhere' }, { environment: {}, dataDirectory })
    await expect(access).rejects.toThrow('no API key is known')
  })

  test('what a Redis with TLS or Sentinels needs, from the environment', async () => {
    const environment = { REDIS_TLS_CA_FILE: '/etc/ca.pem', REDIS_SENTINEL_PASSWORD: 'secret' }
    const access = redisAccess({ redisUrl: 'rediss-sentinel://a,b/master' }, { environment, dataDirectory })
    expect(await access).toMatchObject({ tlsCaFile: '/etc/ca.pem', sentinelPassword: 'secret' })
  })
})

describe('what cannot be used is refused with advice', () => {
  const nowhere = { environment: {}, dataDirectory: join(tmpdir(), 'no-such-folder') }

  test('nothing known', async () => {
    await expect(redisAccess({}, nowhere)).rejects.toThrow(
      'no Redis is known: start the local services with `npm start`, set REDIS_URL, or pass --redis-url',
    )
    await expect(clickhouseAccess({}, nowhere)).rejects.toThrow('set CLICKHOUSE_URL')
    await expect(apiAccess({}, nowhere)).rejects.toThrow('set SLUICE_API_URL')
  })

  test('an address of another kind, without showing it', async () => {
    const error = await redisAccess({ redisUrl: 'http://user:secret@host' }, nowhere).catch(String)
    expect(error).toContain('must start with redis:// or rediss://')
    expect(error).not.toContain('secret')
  })

  test('a malformed prefix', async () => {
    const access = redisAccess({ redisUrl: 'redis://host', prefix: 'a b' }, nowhere)
    await expect(access).rejects.toThrow('SLUICE_PREFIX')
  })

  test('a broken local.json', async () => {
    await writeFile(join(dataDirectory, 'local.json'), '{"apiUrl":')
    await expect(redisAccess({}, { environment: {}, dataDirectory })).rejects.toThrow('local.json is broken')
  })
})

test.each([
  ['http://host:3000', 'http://host:3000/v1/logs'],
  ['http://host:3000/', 'http://host:3000/v1/logs'],
  ['https://host/v1', 'https://host/v1/logs'],
  ['https://host/api/v1/', 'https://host/api/v1/logs'],
])('the logs of %s', (apiUrl, url) => {
  expect(logsUrl(apiUrl)).toBe(url)
})

test('a shown address holds no secret', () => {
  expect(shownUrl('redis://user:secret@host:6379/0?password=secret')).toBe('redis://host:6379/0')
  expect(shownUrl('http://host/?user=a@b')).toBe('http://host')
  expect(shownUrl('redis-cluster://:secret@one:1,[::1]:2')).toBe('redis-cluster://one:1,[::1]:2')
})
