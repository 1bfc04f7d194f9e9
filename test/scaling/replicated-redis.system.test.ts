import { closeRedis } from '@sluice/harness/close-redis'
import { Redis } from 'ioredis'
import { eventually, pause } from '@sluice/harness'
import { Supervisor } from '@sluice/local'
import {
  createLogger,
  DurabilityCheck,
  connectRedis,
  NotReplicatedError,
  ReplicatedRedis,
} from '@sluice/runtime'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { runSluice } from '../sluice-command.ts'
import { durable, PASSWORD, queryServer, startRedisServer, type TestServer } from './redis-servers.ts'

/** Longer than the disk of a busy machine takes. */
const WAIT_MS = 4_000
const SHORT_WAIT_MS = 700
const DEADLINE_MS = 20_000
const configuration = [...durable, 'repl-diskless-sync-delay 0']

let supervisor: Supervisor
let primary: TestServer
let replica: TestServer
let redis: ReplicatedRedis
/** For scripts that are not confirmed. */
let impatient: ReplicatedRedis

const urlOf = ({ port }: TestServer): string => `redis://:${PASSWORD}@127.0.0.1:${port}`

beforeAll(async () => {
  supervisor = new Supervisor()
  primary = await startRedisServer(supervisor, 'primary', configuration)
  replica = await startReplica('replica')
  redis = await open(urlOf(primary), WAIT_MS)
  impatient = await open(urlOf(primary), SHORT_WAIT_MS)
})

afterAll(async () => {
  redis?.close()
  impatient?.close()
  await supervisor?.stop({ force: true })
})

beforeEach(() => eventually(() => requireInSync()))

/** @throws unless the replica follows the primary, and has the data set in its append-only file */
async function requireInSync(): Promise<void> {
  const info = await queryServer(replica.port, (connection) => connection.info())
  if (!info.includes('master_link_status:up')) throw new Error('the replica is not connected yet')
  if (!info.includes('aof_rewrite_in_progress:0') || !info.includes('aof_rewrite_scheduled:0'))
    throw new Error('the replica still writes its append-only file')
}

function startReplica(name: string): Promise<TestServer> {
  return startRedisServer(supervisor, name, [...configuration, `replicaof 127.0.0.1 ${primary.port}`])
}

const valueOn = ({ port }: TestServer, key: string): Promise<string | null> =>
  queryServer(port, (connection) => connection.get(key))

const quiet = { onError: () => undefined }
/** Stands for the other connection of the process, and is never opened. */
const otherConnection = new Redis({ lazyConnect: true })

async function open(url: string, waitMs: number): Promise<ReplicatedRedis> {
  const opened = new ReplicatedRedis(otherConnection, { url, replicas: 1, waitMs, ...quiet })
  await opened.ready(AbortSignal.timeout(DEADLINE_MS))
  return opened
}

function freezeReplica(): void {
  replica.process.kill('SIGSTOP')
  onTestFinished(() => replica.process.kill('SIGCONT'))
}

const SET = "return redis.call('SET', KEYS[1], ARGV[1])"
const GET = "return redis.call('GET', KEYS[1])"

describe('a script', () => {
  it('is on the replica when it resolves', async () => {
    expect(await redis.script(SET)(['{t}:a'], ['1'])).toBe('OK')
    expect(await valueOn(replica, '{t}:a')).toBe('1')
  })

  it('rejects if the replica does not confirm it, and resolves when it is repeated and the replica replies', async () => {
    freezeReplica()
    await expect(impatient.script(SET)(['{t}:c'], ['1'])).rejects.toThrow(NotReplicatedError)
    replica.process.kill('SIGCONT')
    await eventually(async () => expect(await redis.script(SET)(['{t}:c'], ['1'])).toBe('OK'))
    expect(await valueOn(replica, '{t}:c')).toBe('1')
  })

  it('that only reads rejects if the replica does not have what it has read', async () => {
    const get = redis.script(GET)
    await get(['{t}:d'], [])
    freezeReplica()
    await queryServer(primary.port, (connection) => connection.set('{t}:d', '1'))
    await expect(impatient.script(GET)(['{t}:d'], [])).rejects.toThrow(NotReplicatedError)
  })

  it('rejects without a connection, and is never sent on a new one', async () => {
    const other = await startRedisServer(supervisor, 'other', configuration)
    const alone = await open(urlOf(other), SHORT_WAIT_MS)
    onTestFinished(() => alone.close())
    const running = alone.script("return redis.call('INCR', KEYS[1])")(['{t}:n'], [])
    const failure = running.catch((error: unknown) => error)
    await eventually(async () => expect(await valueOn(other, '{t}:n')).toBe('1'))
    await queryServer(other.port, (connection) =>
      connection.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
    )
    expect(await failure).toBeInstanceOf(Error)
    await alone.ready(AbortSignal.timeout(DEADLINE_MS))
    await pause(SHORT_WAIT_MS)
    expect(await valueOn(other, '{t}:n')).toBe('1')
  })
})

describe('a check of the replicas', () => {
  it('blocks scripts while there is a replica that need not confirm, also while the server does not respond: it could be promoted', async () => {
    const third = await startReplica('third')
    // Without the check, too, as soon as the replica is connected.
    await eventually(() =>
      expect(redis.script(GET)(['{t}:a'], [])).rejects.toThrow('2 replicas are connected, and only 1 must'),
    )
    const connection = connectRedis(urlOf(primary), { failFast: true, commandTimeoutMs: 2_000 })
    connection.on('error', () => undefined)
    const scripts = new ReplicatedRedis(otherConnection, {
      url: urlOf(primary),
      replicas: 1,
      waitMs: WAIT_MS,
      ...quiet,
    })
    const logger = createLogger('test', 'silent')
    const check = new DurabilityCheck({ redis: connection, allowUnsafe: false, durable: scripts, logger })
    check.start()
    onTestFinished(async () => {
      check.stop()
      scripts.close()
      await closeRedis(connection)
    })
    const reason = 'has 2 replicas, and only 1 must confirm'
    await expect.poll(() => check.readiness.reasons[0]).toContain(reason)
    await expect(scripts.script(GET)(['{t}:a'], [])).rejects.toThrow(reason)
    const info = vi.spyOn(connection, 'info').mockRejectedValue(new Error('Command timed out'))
    connection.emit('ready')
    await vi.waitFor(() => expect(info).toHaveBeenCalled())
    // The check itself ends after its last response.
    await new Promise(setImmediate)
    expect(check.readiness.reasons.join()).toContain(reason)
    await expect(scripts.script(GET)(['{t}:a'], [])).rejects.toThrow(reason)
    info.mockRestore()
    await third.process.stop({ signal: 'SIGKILL' })
    await expect.poll(() => check.readiness.ready).toBe(true)
    await scripts.script(GET)(['{t}:a'], [])
  })
})

const sluice = (...args: string[]): ReturnType<typeof runSluice> =>
  runSluice(args, { REDIS_URL: urlOf(primary), REDIS_REPLICAS_ACK: '1', SLUICE_PREFIX: 'cli' })

describe('the command line', () => {
  it('changes nothing while there is a replica that need not confirm, and still reads', async () => {
    expect(await sluice('projects', 'create', 'before')).toMatchObject({ code: 0 })
    const fourth = await startReplica('fourth')
    onTestFinished(async () => {
      await fourth.process.stop({ signal: 'SIGKILL' })
    })
    await eventually(async () =>
      expect(await queryServer(primary.port, (connection) => connection.info('replication'))).toContain(
        'connected_slaves:2',
      ),
    )
    const created = await sluice('projects', 'create', 'shop')
    expect(created.code).toBe(1)
    expect(created.stderr).toContain('has 2 replicas, and only 1 must confirm')
    expect(created.stderr).toContain('Correct this, and repeat the command')
    const { stdout } = await sluice('projects', 'list')
    expect(stdout).toContain('before')
    expect(stdout).not.toContain('shop')
  })
})
