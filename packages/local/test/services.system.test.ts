import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { networkInterfaces, totalmem } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServices, type Services } from '../src/index.ts'
import { descendantsOf } from './processes.ts'

let services: Services

beforeAll(async () => {
  services = await startServices()
})
afterAll(() => services.stop())

/** Runs a query as the user of the services, or as another user. */
async function query(sql: string, user?: { name: string; password: string }): Promise<string> {
  const { url, username, password } = services.clickhouse
  const response = await fetch(url, {
    method: 'POST',
    body: sql,
    headers: {
      'X-ClickHouse-User': user?.name ?? username,
      'X-ClickHouse-Key': user?.password ?? password,
    },
  })
  return (await response.text()).trim()
}

async function withRedis<T>(url: string, act: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null })
  redis.on('error', () => undefined)
  try {
    return await act(redis)
  } finally {
    if (redis.status !== 'end') redis.disconnect()
  }
}

test('writes that Redis has acknowledged survive kill -9', async () => {
  const { redis } = services.processes
  await withRedis(services.redisUrl, (client) => client.set('kept', 'yes'))
  redis.kill('SIGKILL')
  await redis.exited
  await redis.start()
  expect(await withRedis(services.redisUrl, (client) => client.get('kept'))).toBe('yes')
})

test('inserts that ClickHouse has acknowledged, and their deduplication tokens, survive kill -9', async () => {
  const { clickhouse } = services.processes
  await query('CREATE DATABASE durable')
  await query(
    'CREATE TABLE durable.t (n UInt32) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100',
  )
  const insert =
    "INSERT INTO durable.t SETTINGS insert_deduplication_token = 'a', async_insert = 0 SELECT number FROM numbers(1000)"
  expect(await query(insert)).toBe('')
  clickhouse.kill('SIGKILL')
  await clickhouse.exited
  await clickhouse.start()
  expect(await query('SELECT count() FROM durable.t')).toBe('1000')
  expect(await query(insert)).toBe('')
  expect(await query('SELECT count() FROM durable.t')).toBe('1000')
})

test('Redis is configured to sync before it replies, and never to evict', async () => {
  const settings = await withRedis(services.redisUrl, (client) =>
    client.config('GET', 'appendonly', 'appendfsync', 'maxmemory-policy', 'save', 'bind'),
  )
  expect(Object.fromEntries(pairs(settings))).toEqual({
    appendonly: 'yes',
    appendfsync: 'always',
    'maxmemory-policy': 'noeviction',
    save: '',
    bind: '127.0.0.1',
  })
})

test('Redis may use a quarter of the memory, and at least 256 MiB', async () => {
  const [, bytes] = await withRedis(services.redisUrl, (client) => client.config('GET', 'maxmemory'))
  expect(Number(bytes)).toBeGreaterThanOrEqual(256 * 1024 * 1024)
  expect(Number(bytes)).toBeLessThanOrEqual(Math.max(256 * 1024 * 1024, totalmem() / 4))
})

test('Redis rejects clients without the password', async () => {
  const url = new URL(services.redisUrl)
  url.password = ''
  await expect(withRedis(url.href, (client) => client.get('kept'))).rejects.toThrow(/NOAUTH/)
})

test.each([
  { name: 'default', password: '' },
  { name: 'sluice', password: '' },
])('ClickHouse rejects the user $name with the password "$password"', async (user) => {
  expect(await query('SELECT 1', user)).toMatch(/AUTHENTICATION_FAILED|REQUIRED_PASSWORD|SESSION_LIMIT/)
})

test('no command line contains a password', () => {
  const commands = descendantsOf(process.pid).map(({ command }) => command)
  expect(commands).toContainEqual(expect.stringContaining('clickhouse-server'))
  for (const secret of [services.clickhouse.password, new URL(services.redisUrl).password]) {
    expect(commands).not.toContainEqual(expect.stringContaining(secret))
  }
})

test('the file with the users of ClickHouse contains only the hash of the password', () => {
  const users = readFileSync(join(services.dataDir, 'clickhouse', 'users.xml'), 'utf8')
  expect(users).toContain(hash('sha256', services.clickhouse.password, 'hex'))
  expect(users).not.toContain(services.clickhouse.password)
})

test('there are no system log tables', async () => {
  expect(
    await query("SELECT count() FROM system.tables WHERE database = 'system' AND name LIKE '%\\_log'"),
  ).toBe('0')
})

test('both servers listen on 127.0.0.1 only', async () => {
  const addresses = Object.values(networkInterfaces())
    .flat()
    .filter((address) => address?.family === 'IPv4' && !address.internal)
  for (const url of [services.redisUrl, services.clickhouse.url]) {
    for (const address of addresses) {
      await expect(connectTo(address?.address ?? '', Number(new URL(url).port))).rejects.toThrow(
        'ECONNREFUSED',
      )
    }
  }
})

function connectTo(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => {
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
  })
}

function pairs(flat: readonly string[]): [string, string][] {
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : []))
}
