import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hashApiKey, isWellFormedApiKey } from '../src/api-key.ts'
import { RegistryError } from '../src/registry-store.ts'
import { Registry } from '../src/registry.ts'
import { RegistryFixture, START_MS } from './registry-fixture.ts'

let fixture: RegistryFixture
let registry: Registry

beforeEach(async () => {
  fixture = new RegistryFixture()
  registry = fixture.registry
  await registry.projects.create('demo')
})

afterEach(() => fixture.close())

describe('keys', () => {
  it('have the scope ingest unless others are given, and are found by their hash', async () => {
    const { key, record } = await registry.keys.create('demo', { name: 'laptop' })
    expect(record).toMatchObject({ projectId: 'demo', name: 'laptop', scopes: ['ingest'] })
    expect(record.createdAt).toBe('2026-11-20T12:00:00.000Z')
    expect(await registry.keys.find(hashApiKey(key))).toEqual(record)
    const expiresAt = new Date(START_MS + 1_000)
    const other = await registry.keys.create('demo', { scopes: ['read', 'ingest'], expiresAt })
    const stored = { scopes: ['read', 'ingest'], expiresAt: '2026-11-20T12:00:01.000Z' }
    expect(await registry.keys.find(hashApiKey(other.key))).toMatchObject(stored)
  })

  it('are stored in Redis only as hashes', async () => {
    const { key } = await registry.keys.create('demo')
    const secret = key.slice('slk_'.length)
    for (const name of await fixture.redisKeys()) {
      expect(name).not.toContain(secret)
      const dump = await fixture.redis.dumpBuffer(name)
      expect(dump?.includes(secret)).toBe(false)
    }
  })

  it('are listed oldest first, without the keys of other projects', async () => {
    await registry.projects.create('other')
    await registry.keys.create('other')
    const names = ['c', 'a', 'b']
    for (const name of names) {
      fixture.nowMs += 1_000
      await registry.keys.create('demo', { name })
    }
    expect((await registry.keys.list('demo')).map(({ name }) => name)).toEqual(names)
    expect(await registry.keys.list('unknown')).toEqual([])
  })

  it('cannot be created without a project, and not for an id that would name another Redis key', async () => {
    await registry.keys.create('demo', { name: 'n'.repeat(200) })
    for (const projectId of ['unknown', '', 'DEMO', 'demo:keys'])
      await expect(registry.keys.create(projectId)).rejects.toThrow(RegistryError)
    await expect(registry.keys.create('demo', { name: 'n'.repeat(201) })).rejects.toThrow(RegistryError)
  })

  it('are found together, in the order of their hashes', async () => {
    const [one, two] = [await registry.keys.create('demo'), await registry.keys.create('demo')]
    const hashes = [hashApiKey(two.key), '0'.repeat(64), hashApiKey(one.key)]
    expect(await registry.keys.findMany(hashes)).toEqual([two.record, undefined, one.record])
    expect(await registry.keys.findMany([])).toEqual([])
  })
})

describe('revoking a key', () => {
  it('marks the key as revoked since the first time, and keeps it in the list', async () => {
    const { key, record } = await registry.keys.create('demo')
    fixture.nowMs += 5_000
    const revoked = { ...record, revokedAt: '2026-11-20T12:00:05.000Z' }
    expect(await registry.keys.revoke(record.id)).toEqual(revoked)
    fixture.nowMs += 60_000
    expect(await registry.keys.revoke(record.id)).toEqual(revoked)
    expect(await registry.keys.find(hashApiKey(key))).toEqual(revoked)
    expect(await registry.keys.list('demo')).toEqual([revoked])
    for (const id of ['', 'key_0000000000000000', 'demo', '*'])
      await expect(registry.keys.revoke(id)).rejects.toThrow(RegistryError)
  })
})

const inMs = (ms: number): string => new Date(fixture.nowMs + ms).toISOString()

describe('rotating a key', () => {
  const DAY_MS = 86_400_000

  it('creates a key like the old one, which stays active during the overlap', async () => {
    const old = await registry.keys.create('demo', { name: 'web', scopes: ['read', 'ingest'] })
    fixture.nowMs += DAY_MS
    const { key, record, replaced } = await registry.keys.rotate(old.record.id, 1_000)
    expect(isWellFormedApiKey(key)).toBe(true)
    expect(key).not.toBe(old.key)
    expect(record).toMatchObject({ projectId: 'demo', name: 'web', scopes: ['read', 'ingest'] })
    expect(record).toMatchObject({ createdAt: inMs(0), expiresAt: undefined, revokedAt: undefined })
    expect(replaced).toEqual({ ...old.record, expiresAt: inMs(1_000), replacedBy: record.id })
    expect(await registry.keys.list('demo')).toEqual([replaced, record])
    expect(await registry.keys.find(hashApiKey(key))).toEqual(record)
  })

  it('gives the new key the lifetime of the old one, whose expiry does not move later', async () => {
    const { record: old } = await registry.keys.create('demo', {
      expiresAt: new Date(fixture.nowMs + 10 * DAY_MS),
    })
    fixture.nowMs += 9 * DAY_MS
    const { record, replaced } = await registry.keys.rotate(old.id, 5 * DAY_MS)
    expect(record.expiresAt).toBe(inMs(10 * DAY_MS))
    expect(replaced.expiresAt).toBe(old.expiresAt)
  })

  it.each([
    ['revoked', (id: string) => registry.keys.revoke(id), 'it is revoked'],
    ['rotated', (id: string) => registry.keys.rotate(id, DAY_MS), 'it was already rotated'],
    ['expired', () => Promise.resolve((fixture.nowMs += 2 * DAY_MS)), 'it has expired'],
    ['of a deleted project', () => registry.projects.delete('demo'), 'there is no key'],
  ])('rejects a key that is %s, and creates no key', async (_state, invalidate, reason) => {
    const { record } = await registry.keys.create('demo', { expiresAt: new Date(fixture.nowMs + DAY_MS) })
    await invalidate(record.id)
    const before = await registry.keys.list('demo')
    await expect(registry.keys.rotate(record.id, DAY_MS)).rejects.toThrow(reason)
    expect(await registry.keys.list('demo')).toEqual(before)
  })
})

describe('the last use of keys', () => {
  it('is recorded for each key, and never moves back', async () => {
    const a = await registry.keys.create('demo')
    const b = await registry.keys.create('demo')
    const [hashA, hashB] = [hashApiKey(a.key), hashApiKey(b.key)]
    await registry.keys.recordUses(new Map([[hashA, START_MS + 2_000]]))
    const later = [hashB, START_MS + 3_000] as const
    await registry.keys.recordUses(new Map([[hashA, START_MS + 1_000], later]))
    expect(await registry.keys.find(hashA)).toEqual({ ...a.record, lastUsedAt: '2026-11-20T12:00:02.000Z' })
    expect(await registry.keys.find(hashB)).toEqual({ ...b.record, lastUsedAt: '2026-11-20T12:00:03.000Z' })
  })

  it('is recorded for more keys than one script takes', async () => {
    const { key, record } = await registry.keys.create('demo')
    const others = Array.from({ length: 2_500 }, (_, i) => [hashApiKey(String(i)), START_MS] as const)
    await registry.keys.recordUses(new Map([...others, [hashApiKey(key), START_MS]]))
    expect(await registry.keys.list('demo')).toEqual([{ ...record, lastUsedAt: '2026-11-20T12:00:00.000Z' }])
  })
})
