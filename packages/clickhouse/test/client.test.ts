import { readSettings } from '@sluice/runtime'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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

describe('CLICKHOUSE_TLS_CA_FILE', () => {
  it('is read', () => {
    const environment = {
      CLICKHOUSE_URL: 'https://clickhouse:8443',
      CLICKHOUSE_TLS_CA_FILE: join(folder, 'ca.pem'),
    }
    expect(access(environment).tlsCa).toBe('-----BEGIN CERTIFICATE-----\n')
  })

  it.each([
    ['a file that does not exist', 'https://clickhouse:8443', 'none.pem', 'cannot be read: ENOENT'],
    ['a file without a certificate', 'https://clickhouse:8443', 'key.pem', 'contains no PEM certificate'],
    ['an address without TLS', 'http://clickhouse:8123', 'ca.pem', 'needs an https:// address'],
  ])('rejects %s', (_what, url, file, reason) => {
    const environment = { CLICKHOUSE_URL: url, CLICKHOUSE_TLS_CA_FILE: join(folder, file) }
    expect(() => access(environment)).toThrow(reason)
  })
})

it.each(['nonsense', 'clickhouse:8123', 'tcp://clickhouse:9000', 'http://'])(
  'rejects the CLICKHOUSE_URL %s',
  (url) => {
    expect(() => access({ CLICKHOUSE_URL: url })).toThrow(
      'CLICKHOUSE_URL must start with http:// or https://',
    )
  },
)

describe('CLICKHOUSE_CLUSTER', () => {
  it.each(['main', 'prod-eu.1', '{cluster}'])('accepts %s', (cluster) => {
    expect(access({ CLICKHOUSE_CLUSTER: cluster }).cluster).toBe(cluster)
  })

  it.each(["a'b", 'a b', '{cluster', '{a-b}', 'a`', 'x'.repeat(65)])('rejects %s', (cluster) => {
    expect(() => access({ CLICKHOUSE_CLUSTER: cluster })).toThrow('CLICKHOUSE_CLUSTER')
  })
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

describe('an insert', () => {
  it('on a cluster waits for most replicas, in parallel with other inserts, and for half the request timeout at most', async () => {
    expect(await sentSettings({ cluster: 'main' })).toMatchObject({
      async_insert: '0',
      insert_quorum: 'auto',
      insert_quorum_parallel: '1',
      insert_quorum_timeout: '30000',
    })
  })

  it('on a single server has no quorum', async () => {
    const names = Object.keys(await sentSettings(undefined))
    expect(names).toContain('async_insert')
    expect(names.filter((name) => name.includes('quorum'))).toEqual([])
  })
})

it.each(['x; DROP DATABASE y', 'a-b', '1a', 'a.b', '`a`', 'a'.repeat(65)])(
  'the settings do not allow the database name %j, since the name becomes part of SQL',
  (name) => {
    expect(() => readSettings(clickhouseSettings, { CLICKHOUSE_DATABASE: name })).toThrow(
      'CLICKHOUSE_DATABASE',
    )
  },
)
