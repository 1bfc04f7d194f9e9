import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { hashApiKey, isWellFormedApiKey } from '../src/api-key.ts'
import { Registry, RegistryError } from '../src/registry.ts'

const START_MS = Date.UTC(2026, 10, 20, 12)

let redis: RedisConnection
let subscriber: RedisConnection
let prefix: string
let nowMs: number
let registry: Registry
let changes: string[]

beforeAll(() => {
  redis = connectRedis(inject('services').redisUrl, { failFast: false })
  subscriber = connectRedis(inject('services').redisUrl, { failFast: false })
  subscriber.on('message', (_channel: string, change: string) => changes.push(change))
})

beforeEach(async () => {
  prefix = redisNames(`test-registry-${randomUUID()}`).registryPrefix
  nowMs = START_MS
  changes = []
  registry = new Registry(redis, prefix, () => nowMs)
  await subscriber.subscribe(registry.changesChannel)
})

afterEach(async () => {
  await subscriber.unsubscribe()
  const left = await redis.keys(`${prefix.replaceAll(/[{}]/g, '?')}:*`)
  if (left.length > 0) await redis.del(left)
})

afterAll(() => {
  redis.disconnect()
  subscriber.disconnect()
})

describe('projects', () => {
  it('are found as they were created', async () => {
    const created = await registry.createProject('demo', 7)
    expect(created).toEqual({
      id: 'demo',
      createdAt: '2026-11-20T12:00:00.000Z',
      enabled: true,
      retentionDays: 7,
    })
    expect(await registry.findProject('demo')).toEqual(created)
  })

  it('are listed by their ids', async () => {
    for (const id of ['web', 'api', 'batch-2']) await registry.createProject(id)
    expect((await registry.listProjects()).map(({ id }) => id)).toEqual(['api', 'batch-2', 'web'])
  })

  it('are not there in an empty registry', async () => {
    expect(await registry.listProjects()).toEqual([])
    expect(await registry.findProject('demo')).toBeUndefined()
  })

  it('keep their rows for 30 days unless told otherwise', async () => {
    expect((await registry.createProject('demo')).retentionDays).toBe(30)
  })

  it('are not created twice, and the first stays as it is', async () => {
    await registry.createProject('demo', 7)
    await expect(registry.createProject('demo', 90)).rejects.toThrow(RegistryError)
    expect((await registry.findProject('demo'))?.retentionDays).toBe(7)
  })

  it('are created once by those who race for the name', async () => {
    const tries = await Promise.allSettled(Array.from({ length: 10 }, () => registry.createProject('demo')))
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  it.each(['', 'Demo', 'a_b', 'a b', '-a', 'a-', 'a:b', 'a\n', 'ä', 'a'.repeat(64), '../x', '*', '{x}'])(
    'are not named %j',
    async (id) => {
      await expect(registry.createProject(id)).rejects.toThrow(RegistryError)
      expect(await registry.listProjects()).toEqual([])
    },
  )

  it.each(['a', '7', 'a-b', 'a--b', 'a'.repeat(63)])('may be named %j', async (id) => {
    await registry.createProject(id)
    expect(await registry.findProject(id)).toMatchObject({ id })
  })

  it.each([0, -1, 2, 29, 31, 1.5, 10_000, NaN])('do not keep their rows for %d days', async (days) => {
    await expect(registry.createProject('demo', days)).rejects.toThrow(RegistryError)
  })

  it('are disabled and enabled, told about each time, and otherwise stay as they are', async () => {
    const made = await registry.createProject('demo', 7)
    await registry.enableProject('demo', false)
    expect(await registry.findProject('demo')).toEqual({ ...made, enabled: false })
    await registry.enableProject('demo', true)
    expect(await registry.findProject('demo')).toEqual(made)
    await vi.waitFor(() => expect(changes).toEqual(['demo', 'demo', 'demo']))
  })

  it.each([true, false])('that are not there are not made by enabling: %s', async (enabled) => {
    await expect(registry.enableProject('demo', enabled)).rejects.toThrow(RegistryError)
    expect(await redis.keys(`${prefix.replaceAll(/[{}]/g, '?')}:*`)).toEqual([])
  })

  it('are told about when they change', async () => {
    await registry.createProject('demo')
    await vi.waitFor(() => expect(changes).toEqual(['demo']))
  })
})

describe('limits of a project', () => {
  beforeEach(async () => {
    await registry.createProject('demo', 7)
  })

  it('are none of its own at first', async () => {
    expect(await registry.findProject('demo')).not.toHaveProperty('limits')
  })

  it('are set one by one, and the others stay', async () => {
    await registry.setLimits('demo', { entriesPerSecond: 100, burstBytes: 4_096 })
    const changed = await registry.setLimits('demo', { entriesPerSecond: 0 })
    expect(changed).toMatchObject({ retentionDays: 7, limits: { entriesPerSecond: 0, burstBytes: 4_096 } })
    expect(await registry.findProject('demo')).toEqual(changed)
  })

  it('go back to the default', async () => {
    await registry.setLimits('demo', { entriesPerSecond: 100, bytesPerSecond: 4_096 })
    const changed = await registry.setLimits('demo', { entriesPerSecond: null, bytesPerSecond: null })
    expect(changed).not.toHaveProperty('limits')
  })

  it.each([
    { entriesPerSecond: -1 },
    { entriesPerSecond: 0.5 },
    { entriesPerSecond: Number.NaN },
    { entriesPerSecond: 1_000_000_001 },
    { burstEntries: 0 },
    { bytesPerSecond: 1_023 },
    { burstBytes: 0 },
    { entriesPerSecond: 5, burstBytes: 1 },
  ])('are refused whole: %j', async (values) => {
    await expect(registry.setLimits('demo', values)).rejects.toThrow(RegistryError)
    expect(await registry.findProject('demo')).not.toHaveProperty('limits')
  })

  it.each(['nobody', '', 'DEMO'])('are refused to a project that is not there: %j', async (id) => {
    await expect(registry.setLimits(id, { entriesPerSecond: 5 })).rejects.toThrow('there is no project')
    expect(await redis.exists(`${prefix}:project:${id}`)).toBe(0)
  })

  it('are told about when they change', async () => {
    await vi.waitFor(() => expect(changes).toEqual(['demo']))
    await registry.setLimits('demo', { entriesPerSecond: 5 })
    await vi.waitFor(() => expect(changes).toEqual(['demo', 'demo']))
  })
})

describe('keys', () => {
  beforeEach(async () => {
    await registry.createProject('demo')
  })

  it('are well-formed, may ingest, and are found by their hash', async () => {
    const { key, record } = await registry.createKey('demo', { name: 'laptop' })
    expect(isWellFormedApiKey(key)).toBe(true)
    expect(record).toMatchObject({ projectId: 'demo', name: 'laptop', scopes: ['ingest'] })
    expect(record.createdAt).toBe('2026-11-20T12:00:00.000Z')
    expect(await registry.findKey(hashApiKey(key))).toEqual(record)
  })

  it('keep their scopes and their end', async () => {
    const expiresAt = new Date(START_MS + 1_000)
    const { key } = await registry.createKey('demo', { scopes: ['read', 'ingest'], expiresAt })
    expect(await registry.findKey(hashApiKey(key))).toMatchObject({
      scopes: ['read', 'ingest'],
      expiresAt: '2026-11-20T12:00:01.000Z',
    })
  })

  it('are kept nowhere in Redis themselves', async () => {
    const { key } = await registry.createKey('demo')
    const secret = key.slice('slk_'.length)
    for (const name of await redis.keys(`${prefix.replaceAll(/[{}]/g, '?')}:*`)) {
      expect(name).not.toContain(secret)
      const dump = await redis.dumpBuffer(name)
      expect(dump?.includes(secret)).toBe(false)
    }
  })

  it('are listed oldest first, those of other projects left out', async () => {
    await registry.createProject('other')
    await registry.createKey('other')
    const names = ['c', 'a', 'b']
    for (const name of names) {
      nowMs += 1_000
      await registry.createKey('demo', { name })
    }
    expect((await registry.listKeys('demo')).map(({ name }) => name)).toEqual(names)
    expect(await registry.listKeys('nobody')).toEqual([])
  })

  it.each(['nobody', '', 'DEMO'])(
    'are not made for the project %j, which is not there',
    async (projectId) => {
      await expect(registry.createKey(projectId)).rejects.toThrow(RegistryError)
    },
  )

  it('are not made for a project id that names another record', async () => {
    await registry.createKey('demo')
    await expect(registry.createKey('demo:keys')).rejects.toThrow(RegistryError)
  })

  it('are not found by a hash that nobody has', async () => {
    expect(await registry.findKey(hashApiKey('slk_x'))).toBeUndefined()
  })

  it('have a name that fits on a line', async () => {
    await registry.createKey('demo', { name: 'n'.repeat(200) })
    await expect(registry.createKey('demo', { name: 'n'.repeat(201) })).rejects.toThrow(RegistryError)
  })

  it('are told about when they are made and revoked', async () => {
    const { key, record } = await registry.createKey('demo')
    await registry.revokeKey(record.id)
    await vi.waitFor(() => expect(changes).toEqual(['demo', hashApiKey(key), hashApiKey(key)]))
  })
})

describe('revoking', () => {
  beforeEach(async () => {
    await registry.createProject('demo')
  })

  it('marks the key, and leaves it in the list', async () => {
    const { key, record } = await registry.createKey('demo')
    nowMs += 5_000
    const revoked = { ...record, revokedAt: '2026-11-20T12:00:05.000Z' }
    expect(await registry.revokeKey(record.id)).toEqual(revoked)
    expect(await registry.findKey(hashApiKey(key))).toEqual(revoked)
    expect(await registry.listKeys('demo')).toEqual([revoked])
  })

  it('leaves the other keys of the project alone', async () => {
    const { record } = await registry.createKey('demo')
    const other = await registry.createKey('demo')
    await registry.revokeKey(record.id)
    expect(await registry.findKey(hashApiKey(other.key))).toMatchObject({ revokedAt: undefined })
  })

  it('a second time keeps the first time', async () => {
    const { record } = await registry.createKey('demo')
    const { revokedAt } = await registry.revokeKey(record.id)
    nowMs += 60_000
    expect((await registry.revokeKey(record.id)).revokedAt).toBe(revokedAt)
  })

  it.each(['', 'key_0000000000000000', 'demo', '*'])('refuses the id %j, which no key has', async (id) => {
    await expect(registry.revokeKey(id)).rejects.toThrow(RegistryError)
  })

  it('does not bring back a key that is forgotten just then', async () => {
    const { key, record } = await registry.createKey('demo')
    const keyName = `${prefix}:key:${hashApiKey(key)}`
    vi.spyOn(registry, 'findKey').mockImplementationOnce(async () => {
      await redis.del(keyName)
      return record
    })
    await expect(registry.revokeKey(record.id)).rejects.toThrow(RegistryError)
    expect(await redis.exists(keyName)).toBe(0)
  })

  it('is seen by another registry on the same prefix', async () => {
    const { key, record } = await registry.createKey('demo')
    const another = new Registry(redis, prefix)
    expect(await another.findKey(hashApiKey(key))).toMatchObject({ revokedAt: undefined })
    await registry.revokeKey(record.id)
    expect((await another.findKey(hashApiKey(key)))?.revokedAt).toBeDefined()
  })
})

const inMs = (ms: number): string => new Date(nowMs + ms).toISOString()

describe('rotating', () => {
  const DAY_MS = 86_400_000

  beforeEach(async () => {
    await registry.createProject('demo')
  })

  it('makes a key like the old one, which goes on for the overlap', async () => {
    const old = await registry.createKey('demo', { name: 'web', scopes: ['read', 'ingest'] })
    nowMs += DAY_MS
    const { key, record, replaced } = await registry.rotateKey(old.record.id, 1_000)
    expect(isWellFormedApiKey(key)).toBe(true)
    expect(key).not.toBe(old.key)
    expect(record).toMatchObject({ projectId: 'demo', name: 'web', scopes: ['read', 'ingest'] })
    expect(record).toMatchObject({ createdAt: inMs(0), expiresAt: undefined, revokedAt: undefined })
    expect(replaced).toEqual({ ...old.record, expiresAt: inMs(1_000), replacedBy: record.id })
    expect(await registry.listKeys('demo')).toEqual([replaced, record])
    expect(await registry.findKey(hashApiKey(key))).toEqual(record)
    await vi.waitFor(() =>
      expect(changes).toEqual(['demo', old.key, key, old.key].map((k) => (k === 'demo' ? k : hashApiKey(k)))),
    )
  })

  it('gives the new key as long a life as the old one was given, which ends no later for it', async () => {
    const { record: old } = await registry.createKey('demo', { expiresAt: new Date(nowMs + 10 * DAY_MS) })
    nowMs += 9 * DAY_MS
    const { record, replaced } = await registry.rotateKey(old.id, 5 * DAY_MS)
    expect(record.expiresAt).toBe(inMs(10 * DAY_MS))
    expect(replaced.expiresAt).toBe(old.expiresAt)
  })

  it('leaves a key that can be revoked, and rotated in its turn', async () => {
    const { record: first } = await registry.createKey('demo')
    nowMs += 1_000
    const { record: second } = await registry.rotateKey(first.id, 0)
    nowMs += 1_000
    const { record: third } = await registry.rotateKey(second.id, 0)
    await registry.revokeKey(third.id)
    expect((await registry.listKeys('demo')).at(-1)).toMatchObject({ revokedAt: inMs(0) })
  })

  it.each([
    ['revoked', (id: string) => registry.revokeKey(id), 'it is revoked'],
    ['rotated', (id: string) => registry.rotateKey(id, DAY_MS), 'it was rotated already'],
    ['expired', () => Promise.resolve((nowMs += 2 * DAY_MS)), 'it has expired'],
    ['of a project that is gone', () => registry.deleteProject('demo'), 'there is no key'],
  ])('refuses a key that is %s, and makes none', async (_what, spoil, reason) => {
    const { record } = await registry.createKey('demo', { expiresAt: new Date(nowMs + DAY_MS) })
    await spoil(record.id)
    const before = await registry.listKeys('demo')
    await expect(registry.rotateKey(record.id, DAY_MS)).rejects.toThrow(reason)
    expect(await registry.listKeys('demo')).toEqual(before)
  })

  it('is done once by those who race for it', async () => {
    const { record } = await registry.createKey('demo')
    const tries = await Promise.allSettled(Array.from({ length: 10 }, () => registry.rotateKey(record.id, 0)))
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await registry.listKeys('demo')).toHaveLength(2)
  })
})

describe('the last use of keys', () => {
  beforeEach(async () => {
    await registry.createProject('demo')
  })

  it('is noted for each, and never goes back', async () => {
    const a = await registry.createKey('demo')
    const b = await registry.createKey('demo')
    const [hashA, hashB] = [hashApiKey(a.key), hashApiKey(b.key)]
    await registry.noteKeysUsed(new Map([[hashA, START_MS + 2_000]]))
    await registry.noteKeysUsed(
      new Map([
        [hashA, START_MS + 1_000],
        [hashB, START_MS + 3_000],
      ]),
    )
    expect(await registry.findKey(hashA)).toEqual({ ...a.record, lastUsedAt: '2026-11-20T12:00:02.000Z' })
    expect(await registry.findKey(hashB)).toEqual({ ...b.record, lastUsedAt: '2026-11-20T12:00:03.000Z' })
  })

  it('is noted for more keys than one step takes', async () => {
    const { key, record } = await registry.createKey('demo')
    const others = Array.from({ length: 2_500 }, (_, i) => [hashApiKey(String(i)), START_MS] as const)
    await registry.noteKeysUsed(new Map([...others, [hashApiKey(key), START_MS]]))
    expect(await registry.listKeys('demo')).toEqual([{ ...record, lastUsedAt: '2026-11-20T12:00:00.000Z' }])
  })

  it('makes no key that is not there', async () => {
    await registry.noteKeysUsed(new Map([[hashApiKey('slk_x'), START_MS]]))
    expect(await redis.exists(`${prefix}:key:${hashApiKey('slk_x')}`)).toBe(0)
  })
})

describe('deleting a project', () => {
  const KEPT_MS = (7 + 2) * 86_400_000

  beforeEach(async () => {
    // What is kept for a while is kept by the clock of Redis.
    nowMs = Date.now()
    await registry.createProject('demo', 7)
  })

  it('leaves its keys without a project, and its id taken, until its rows are gone', async () => {
    const { key, record } = await registry.createKey('demo')
    expect(await registry.deleteProject('demo')).toEqual(new Date(nowMs + KEPT_MS))
    expect(await registry.findProject('demo')).toBeUndefined()
    expect(await registry.listProjects()).toEqual([])
    expect(await registry.listKeys('demo')).toEqual([])
    expect(await registry.findKey(hashApiKey(key))).toEqual(record)
    const freeOn = new Date(nowMs + KEPT_MS).toISOString()
    await expect(registry.createProject('demo')).rejects.toThrow(`free again on ${freeOn}`)
    await expect(registry.createKey('demo')).rejects.toThrow('there is no project demo')
    await expect(registry.revokeKey(record.id)).rejects.toThrow('there is no key')
    await expect(registry.deleteProject('demo')).rejects.toThrow('there is no project demo')
    await vi.waitFor(() => expect(changes.at(-1)).toBe('demo'))
  })

  it('leaves nothing for longer than that', async () => {
    const { key } = await registry.createKey('demo')
    await registry.noteKeysUsed(new Map([[hashApiKey(key), nowMs]]))
    await registry.deleteProject('demo')
    await registry.noteKeysUsed(new Map([[hashApiKey(key), nowMs + 1_000]]))
    const left = await redis.keys(`${prefix.replaceAll(/[{}]/g, '?')}:*`)
    expect(left).toHaveLength(2)
    for (const name of left) expect(await redis.pexpiretime(name)).toBe(nowMs + KEPT_MS)
  })

  it('frees its id after that, and no old key comes to life again', async () => {
    nowMs = Date.now() - KEPT_MS + 2_000
    const { key } = await registry.createKey('demo')
    await registry.deleteProject('demo')
    await expect(registry.createProject('demo')).rejects.toThrow('free again')
    await expect
      .poll(() => registry.createProject('demo').catch((error: unknown) => error), {
        interval: 50,
        timeout: 10_000,
      })
      .toMatchObject({ id: 'demo' })
    expect(await registry.findKey(hashApiKey(key))).toBeUndefined()
  })

  it('leaves other projects and their keys alone', async () => {
    await registry.createProject('demo-2')
    const { key, record } = await registry.createKey('demo-2')
    await registry.deleteProject('demo')
    expect(await registry.listProjects()).toMatchObject([{ id: 'demo-2' }])
    expect(await registry.listKeys('demo-2')).toEqual([record])
    expect(await redis.pexpiretime(`${prefix}:key:${hashApiKey(key)}`)).toBe(-1)
  })

  it('leaves nothing half when keys are made, rotated, revoked and enabled beside it', async () => {
    for (let round = 0; round < 20; round += 1) {
      const id = `race-${round}`
      await registry.createProject(id, 7)
      const { record } = await registry.createKey(id)
      const racing = [
        registry.createKey(id),
        registry.rotateKey(record.id, 0),
        registry.deleteProject(id),
        registry.revokeKey(record.id),
        registry.enableProject(id, false),
        registry.createKey(id),
      ]
      await Promise.allSettled(racing.slice(round % 3).concat(racing.slice(0, round % 3)))
      const left = await redis.keys(`${prefix.replaceAll(/[{}]/g, '?')}:*`)
      for (const name of left.filter((key) => !key.includes('project:demo') && !key.endsWith('projects'))) {
        expect([name, await redis.pexpiretime(name)]).toEqual([name, nowMs + KEPT_MS])
      }
    }
  })
})
