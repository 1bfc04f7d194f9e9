import { freePort, Supervisor } from '@sluice/local'
import { connectRedis, type RedisTuning } from '@sluice/runtime'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compare, isClean, readStored } from '../chaos/audit.ts'
import { Journal } from '../chaos/journal.ts'
import { makeCertificates } from '../certificates.ts'
import { eventually, post } from '../support.ts'
import { type Installation, install } from './installation.ts'
import { durable, startRedisServer, type TestServer } from './redis-servers.ts'

const USER = 'sluice'
const USER_PASSWORD = 'p@ss/word'

let supervisor: Supervisor
let server: TestServer
let caFile: string
let sluice: Installation

const urlOf = (host: string, credentials = `${USER}:${encodeURIComponent(USER_PASSWORD)}`): string =>
  `rediss://${credentials}@${host}:${server.port}/1`

/** `PONG`, or why not. */
async function ping(url: string, tuning: Omit<RedisTuning, 'failFast'> = {}): Promise<string> {
  const redis = connectRedis(url, { ...tuning, failFast: true, commandTimeoutMs: 2_000 })
  try {
    await once(redis, 'ready', { signal: AbortSignal.timeout(5_000) })
    return await redis.ping()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    redis.on('error', () => undefined)
    redis.disconnect()
  }
}

beforeAll(async () => {
  supervisor = await Supervisor.open()
  const certificates = await makeCertificates(supervisor.dataDir, 'localhost')
  caFile = certificates.caFile
  const port = await freePort()
  server = await startRedisServer(
    supervisor,
    'redis-tls',
    [
      ...durable.filter((line) => !line.startsWith('requirepass')),
      'port 0',
      `tls-port ${port}`,
      `tls-cert-file ${certificates.certificateFile}`,
      `tls-key-file ${certificates.keyFile}`,
      `tls-ca-cert-file ${caFile}`,
      'tls-auth-clients no',
      'user default off',
      `user ${USER} on >${USER_PASSWORD} ~{tls}* ~{tls:* &{tls}* +@all -@dangerous +info`,
    ],
    {
      port,
      isReady: async () =>
        (await ping(`rediss://${USER}:${encodeURIComponent(USER_PASSWORD)}@localhost:${port}`, {
          tlsCaFile: caFile,
        })) === 'PONG',
    },
  )
  sluice = await install({
    supervisor,
    redisUrl: urlOf('localhost'),
    prefix: 'tls',
    workers: 1,
    environment: { REDIS_TLS_CA_FILE: caFile, QUEUE_SHARDS: '2' },
    tuning: { tlsCaFile: caFile },
  })
  await sluice.startWorkers()
})

afterAll(async () => {
  sluice?.redis.disconnect()
  await supervisor?.stop({ force: true })
})

describe('a Redis with TLS and a user', () => {
  it('is used by API and workers, with no more rights than the documents say', async () => {
    const journal = new Journal('tls')
    const target = { apiUrl: sluice.api.url, apiKey: sluice.apiKey }
    for (const number of journal.open(10)) {
      const { status } = await post(target, { level: 'info', message: journal.message(number) })
      expect(status).toBe(202)
      journal.settle([number], 'acknowledged')
    }
    await eventually(10_000, async () => {
      const { findings } = compare(journal, await readStored(sluice.clickhouse, journal.label))
      expect(findings).toSatisfy(isClean)
    })
    const overload = await fetch(`${sluice.api.opsUrl}/overload`)
    expect(await overload.json()).toMatchObject({ redisReadable: true })
  })

  it('is not believed without the authority that vouches for it', async () => {
    expect(await ping(urlOf('localhost'))).toMatch(/certificate/)
  })

  it('is not believed under another name than its certificate has', async () => {
    expect(await ping(urlOf('127.0.0.1'), { tlsCaFile: caFile })).toMatch(/127\.0\.0\.1 is not in the cert/)
  })

  it('is not reached without TLS, nor with a wrong password', async () => {
    expect(await ping(urlOf('localhost').replace('rediss:', 'redis:'))).not.toBe('PONG')
    const refusal = await ping(urlOf('localhost', `${USER}:wrong`), { tlsCaFile: caFile })
    expect(refusal).toMatch(/^WRONGPASS/)
  })

  it('is not started on where the file of the authority is missing', async () => {
    await expect(ping(urlOf('localhost'), { tlsCaFile: '/nowhere/ca.crt' })).rejects.toThrow(
      'REDIS_TLS_CA_FILE',
    )
  })
})
