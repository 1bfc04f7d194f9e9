import { readSettings } from '@sluice/runtime'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  type ClickHouseAccess,
  clickhouseAccessFrom,
  clickhouseSettings,
  connectClickHouse,
} from '../src/client.ts'
import { recordRequests } from './recorder.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-ca-'))
  await writeFile(join(folder, 'ca.pem'), '-----BEGIN CERTIFICATE-----\n')
  await writeFile(join(folder, 'key.pem'), '-----BEGIN PRIVATE KEY-----\n')
})

afterAll(async () => rm(folder, { recursive: true }))

const access = (environment: Record<string, string>): ClickHouseAccess =>
  clickhouseAccessFrom(readSettings(clickhouseSettings, environment))

it.each([
  ['accepts certificates', 'https://clickhouse:8443', 'ca.pem', undefined],
  ['rejects a file that does not exist', 'https://clickhouse:8443', 'none.pem', 'cannot be read: ENOENT'],
  [
    'rejects a file without a certificate',
    'https://clickhouse:8443',
    'key.pem',
    'contains no PEM certificate',
  ],
  ['rejects an address without TLS', 'http://clickhouse:8123', 'ca.pem', 'needs an https:// address'],
])('CLICKHOUSE_TLS_CA_FILE %s', (_what, url, file, reason = '-----BEGIN CERTIFICATE-----') => {
  const environment = { CLICKHOUSE_URL: url, CLICKHOUSE_TLS_CA_FILE: join(folder, file) }
  const read = (): unknown => {
    throw new Error(access(environment).tlsCa)
  }
  expect(read).toThrow(reason)
})

// The names of the cluster and the database become part of SQL.
it.each([
  ['CLICKHOUSE_URL', ['http://a', 'https://a:1'], ['clickhouse:8123', 'tcp://clickhouse:9000', 'http://']],
  ['CLICKHOUSE_CLUSTER', ['main', 'prod-eu.1', '{cluster}'], ["a'b", 'a b', '{cluster', '{a-b}', 'a`']],
  ['CLICKHOUSE_DATABASE', ['a', 'A_1'], ['x; DROP DATABASE y', 'a-b', '1a', 'a.b', '`a`', 'a'.repeat(65)]],
])('%s has an allowed form', (name, allowed, others) => {
  for (const value of allowed) expect(Object.values(access({ [name]: value }))).toContain(value)
  for (const value of others) expect(() => access({ [name]: value })).toThrow(name)
})

/** The settings in the request of an insert that also passes a setting. */
async function sentSettings(cluster: { cluster: string } | undefined): Promise<Record<string, string>> {
  const [request] = await recordRequests(async (url) => {
    const client = connectClickHouse(
      { url, username: 'u', password: '', database: 'd', ...cluster },
      { requestTimeoutMs: 60_000, connectionsMax: 1 },
    )
    const clickhouse_settings = { async_insert: 0 } as const
    await client.insert({ table: 't', values: [{ a: 1 }], format: 'JSONEachRow', clickhouse_settings })
    await client.close()
  })
  return request?.parameters ?? {}
}

it('an insert on a cluster waits for most replicas, in parallel with other inserts, and for half the request timeout at most', async () => {
  expect(await sentSettings({ cluster: 'main' })).toMatchObject({
    async_insert: '0',
    insert_quorum: 'auto',
    insert_quorum_parallel: '1',
    insert_quorum_timeout: '30000',
  })
  const names = Object.keys(await sentSettings(undefined))
  expect(names.filter((name) => name.includes('quorum'))).toEqual([])
})
