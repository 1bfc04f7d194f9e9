import { hash } from 'node:crypto'
import { once } from 'node:events'
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

/** Runs a query as the user of the services, or with other credentials. */
async function query(sql: string, credentials = {}): Promise<string> {
  const { url, username, password } = services.clickhouse
  const headers = { 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password, ...credentials }
  return (await (await fetch(url, { method: 'POST', body: sql, headers })).text()).trim()
}

/** The value of a setting of Redis. */
async function configOf(name: string, url = services.redisUrl): Promise<string | undefined> {
  const redis = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null })
  redis.on('error', () => undefined)
  try {
    return (await redis.config('GET', name))[1]
  } finally {
    if (redis.status !== 'end') redis.disconnect()
  }
}

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

test.each([
  ['appendonly', 'yes'],
  ['appendfsync', 'always'],
  ['maxmemory-policy', 'noeviction'],
  ['save', ''],
  ['bind', '127.0.0.1'],
])('Redis syncs before it replies, never evicts, and is local: %s is "%s"', async (name, value) => {
  expect(await configOf(name)).toBe(value)
})

test('Redis may use a quarter of the memory, and at least 256 MiB', async () => {
  const bytes = Number(await configOf('maxmemory'))
  expect(bytes).toBeGreaterThanOrEqual(256 * 1024 * 1024)
  expect(bytes).toBeLessThanOrEqual(Math.max(256 * 1024 * 1024, totalmem() / 4))
})

test('both servers reject clients without the password', async () => {
  const url = new URL(services.redisUrl)
  url.password = ''
  await expect(configOf('bind', url.href)).rejects.toThrow(/NOAUTH/)
  for (const user of ['default', 'sluice'])
    expect(await query('SELECT 1', { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': '' })).toMatch(
      /AUTHENTICATION_FAILED|REQUIRED_PASSWORD|SESSION_LIMIT/,
    )
})

test('no command line contains a password, and the file with the users of ClickHouse only its hash', () => {
  const { password } = services.clickhouse
  const commands = descendantsOf(process.pid).map(({ command }) => command)
  expect(commands).toContainEqual(expect.stringContaining('clickhouse-server'))
  for (const secret of [password, new URL(services.redisUrl).password])
    expect(commands).not.toContainEqual(expect.stringContaining(secret))
  const users = readFileSync(join(services.dataDir, 'clickhouse', 'users.xml'), 'utf8')
  expect(users).toContain(hash('sha256', password, 'hex'))
  expect(users).not.toContain(password)
})

test('both servers listen on 127.0.0.1 only', async () => {
  const addresses = Object.values(networkInterfaces()).flatMap((found) => found ?? [])
  for (const { address } of addresses.filter(({ family, internal }) => family === 'IPv4' && !internal))
    for (const url of [services.redisUrl, services.clickhouse.url]) {
      const socket = connect(Number(new URL(url).port), address)
      await expect(once(socket, 'connect')).rejects.toThrow('ECONNREFUSED')
    }
})
