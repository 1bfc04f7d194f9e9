import { connectRedis } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import type { Redis } from 'ioredis'
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { hashApiKey, isWellFormedApiKey } from '../src/api-key.ts'
import { Registry, RegistryError } from '../src/registry.ts'

const START_MS = Date.UTC(2026, 10, 20, 12)

let redis: Redis
let subscriber: Redis
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

  it('are disabled by their record', async () => {
    await registry.createProject('demo')
    await redis.hset(`${prefix}:project:demo`, 'enabled', 'false')
    expect(await registry.findProject('demo')).toMatchObject({ enabled: false })
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

  it('is seen by another registry on the same prefix', async () => {
    const { key, record } = await registry.createKey('demo')
    const another = new Registry(redis, prefix)
    expect(await another.findKey(hashApiKey(key))).toMatchObject({ revokedAt: undefined })
    await registry.revokeKey(record.id)
    expect((await another.findKey(hashApiKey(key)))?.revokedAt).toBeDefined()
  })
})
