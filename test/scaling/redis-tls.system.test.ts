import { eventually, postLogs } from '@sluice/harness'
import { audit, isClean } from '@sluice/harness/audit'
import { makeCertificates } from '@sluice/harness/certificates'
import { Journal } from '@sluice/harness/journal'
import { Supervisor } from '@sluice/local'
import { connectRedis, type RedisTuning } from '@sluice/runtime'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { durable, startRedisServer, type TestServer } from './redis-servers.ts'
import { type ScaledInstallation, startScaledInstallation } from './scaled-installation.ts'

const USER = 'sluice'
const USER_PASSWORD = 'p@ss/word'

let supervisor: Supervisor
let server: TestServer
let caFile: string
let installation: ScaledInstallation

const urlOf = (host: string, credentials = `${USER}:${encodeURIComponent(USER_PASSWORD)}`): string =>
  `rediss://${credentials}@${host}:${server.port}/1`

/** `PONG`, or the error message. */
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
  supervisor = new Supervisor()
  const certificates = await makeCertificates(supervisor.dataDir, 'localhost')
  caFile = certificates.caFile
  const port = await supervisor.ports.free()
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
      `user ${USER} on >${USER_PASSWORD} ~{tls}* ~{tls:* &{tls}* +@all -@dangerous +info +config|get`,
    ],
    {
      port,
      isReady: async () =>
        (await ping(`rediss://${USER}:${encodeURIComponent(USER_PASSWORD)}@localhost:${port}`, {
          tlsCaFile: caFile,
        })) === 'PONG',
    },
  )
  installation = await startScaledInstallation({
    supervisor,
    redisUrl: urlOf('localhost'),
    prefix: 'tls',
    workers: 1,
    environment: { REDIS_TLS_CA_FILE: caFile, QUEUE_SHARDS: '2' },
    tuning: { tlsCaFile: caFile },
  })
  await installation.startWorkers()
})

afterAll(async () => {
  installation?.redis.disconnect()
  await supervisor?.stop({ force: true })
})

describe('a Redis with TLS and a user', () => {
  it('works with the permissions that the documentation requires, and no others', async () => {
    const journal = new Journal('tls')
    for (const number of journal.open(10)) {
      const { status } = await postLogs(installation, { level: 'info', message: journal.message(number) })
      expect(status).toBe(202)
      journal.settle([number], 'acknowledged')
    }
    await eventually(async () => {
      const { findings } = await audit(installation.clickhouse, journal)
      expect(findings).toSatisfy(isClean)
    })
    const overload = await fetch(`${installation.api.opsUrl}/overload`)
    expect(await overload.json()).toMatchObject({ redisReadable: true })
  })

  it('is not trusted without its certificate authority', async () => {
    expect(await ping(urlOf('localhost'))).toMatch(/certificate/)
  })
})
