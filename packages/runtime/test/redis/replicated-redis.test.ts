import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { NotReplicatedError, ReplicatedRedis } from '../../src/redis/replicated-redis.ts'
import { fakeServer, list, strings } from '../support/fake-server.ts'

/** Longer than a busy machine takes. */
const DEADLINE_MS = 30_000

const confirmed = (disk: number, replicas: number): string => list([`:${disk}\r\n`, `:${replicas}\r\n`])
const primary = (...ports: readonly number[]): string =>
  list([strings(['master']), ':0\r\n', list(ports.map((port) => strings(['127.0.0.1', String(port), '0'])))])

/** What the server replies to the commands of a script. */
const replicated = { script: '+ran\r\n', wait: ':1\r\n', waitAof: confirmed(1, 1), role: primary(7000) }
type Replies = Partial<typeof replicated>
/** The server does not have it. */
const NO_WAITAOF = '-ERR unknown command\r\n'

/** Scripts that one replica must confirm. */
async function open(replies: Replies): Promise<ReplicatedRedis> {
  const { script, wait, waitAof, role } = { ...replicated, ...replies }
  const port = await fakeServer((command) => {
    if (/\beval/i.test(command)) return script
    if (command.includes('WAITAOF')) return waitAof
    if (command.includes('WAIT')) return wait
    return command.includes('ROLE') ? role : '+OK\r\n'
  })
  const url = `redis://127.0.0.1:${port}`
  const redis = new ReplicatedRedis(new Redis({ lazyConnect: true }), {
    url,
    replicas: 1,
    waitMs: DEADLINE_MS,
    onError: () => undefined,
  })
  onTestFinished(() => redis.close())
  await redis.ready(AbortSignal.timeout(DEADLINE_MS))
  return redis
}

const run = (redis: ReplicatedRedis): Promise<unknown> => redis.script('return 1')(['{t}:key'], [])

describe('a script', () => {
  it.each([
    ['primary and replica have it on disk', {}],
    ['the server has no WAITAOF, and the replica has it', { waitAof: NO_WAITAOF }],
    ['no other replica is counted by ROLE', { role: '-NOPERM no permissions\r\n' }],
  ])('resolves if %s', async (_when, replies) => {
    expect(await run(await open(replies))).toBe('ran')
  })

  it.each([
    ['the replica has not confirmed it in time', { waitAof: confirmed(1, 0) }, '0 of 1 replicas'],
    ['the disk of the primary does not have it', { waitAof: confirmed(0, 1) }, 'confirmed in time'],
    ['the server has no WAITAOF, and the replica no copy', { waitAof: NO_WAITAOF, wait: ':0\r\n' }, '0 of 1'],
    ['the server has become a replica', { waitAof: '-UNBLOCKED demoted\r\n' }, 'did not confirm'],
    ['an extra replica is connected', { role: primary(7000, 7001) }, '2 replicas are connected'],
  ])('rejects if %s', async (_when, replies, message) => {
    const error: unknown = await run(await open(replies)).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(NotReplicatedError)
    expect(String(error)).toContain(message)
  })

  it('has the strings of its reply as buffers if it is binary', async () => {
    const redis = await open({ script: list(['$4\r\nabcd\r\n', ':1\r\n']) })
    const [text, bytes] = [redis.script('return 1'), redis.script('return 1', { isBinary: true })]
    expect(await text(['{t}:key'], [])).toEqual(['abcd', 1])
    expect(await bytes(['{t}:key'], [])).toEqual([Buffer.from('abcd'), 1])
  })

  it('rejects while the replicas are a danger, and if one is connected that was not counted', async () => {
    const redis = await open({})
    redis.block('there is a danger')
    await expect(run(redis)).rejects.toThrow('there is a danger')
    redis.block(undefined, new Set(['127.0.0.1:7001']))
    await expect(run(redis)).rejects.toThrow('127.0.0.1:7000 is connected, and was not counted yet')
    redis.block(undefined, new Set(['127.0.0.1:7000']))
    expect(await run(redis)).toBe('ran')
  })
})
