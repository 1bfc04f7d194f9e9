import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hashApiKey } from '../src/api-key.ts'
import { keyState } from '../src/api-key.ts'
import type { ProjectBackup } from '../src/projects.ts'
import { RegistryError } from '../src/registry-store.ts'
import type { Registry } from '../src/registry.ts'
import { RegistryFixture } from './registry-fixture.ts'

let fixture: RegistryFixture
let registry: Registry

beforeEach(() => {
  fixture = new RegistryFixture()
  registry = fixture.registry
})

afterEach(() => fixture.close())

describe('projects', () => {
  it('are read back as they were created', async () => {
    const created = await registry.projects.create('demo', 7)
    expect(created).toEqual({
      id: 'demo',
      createdAt: '2026-11-20T12:00:00.000Z',
      enabled: true,
      retentionDays: 7,
    })
    expect(await registry.projects.find('demo')).toEqual(created)
  })

  it('cannot be created twice, and the first one does not change', async () => {
    await registry.projects.create('demo', 7)
    await expect(registry.projects.create('demo', 90)).rejects.toThrow(RegistryError)
    expect((await registry.projects.find('demo'))?.retentionDays).toBe(7)
  })

  it('have ids of letters, digits and hyphens, and allowed retentions', async () => {
    for (const id of ['', 'Demo', 'a_b', '-a', 'a-', 'a:b', 'a\n', 'ä', 'a'.repeat(64), '../x', '*', '{x}'])
      await expect(registry.projects.create(id)).rejects.toThrow(RegistryError)
    for (const days of [0, -1, 2, 31, 1.5, 10_000, NaN])
      await expect(registry.projects.create('demo', days)).rejects.toThrow(RegistryError)
    expect(await registry.projects.list()).toEqual([])
    for (const id of ['a', '7', 'a--b', 'a'.repeat(63)])
      expect(await registry.projects.create(id)).toMatchObject({ id })
  })

  it('are disabled and enabled, and nothing else changes', async () => {
    const made = await registry.projects.create('demo', 7)
    await registry.projects.update('demo', { enabled: false })
    expect(await registry.projects.find('demo')).toEqual({ ...made, enabled: false })
    await registry.projects.update('demo', { enabled: true })
    expect(await registry.projects.find('demo')).toEqual(made)
  })
})

describe('the limits of a project', () => {
  beforeEach(async () => {
    await registry.projects.create('demo', 7)
  })

  it('are set one by one, and return to the default', async () => {
    await registry.projects.update('demo', { entriesPerSecond: 100, burstBytes: 4_096 })
    const changed = await registry.projects.update('demo', { entriesPerSecond: 0 })
    expect(changed).toMatchObject({ retentionDays: 7, limits: { entriesPerSecond: 0, burstBytes: 4_096 } })
    expect(await registry.projects.find('demo')).toEqual(changed)
    const none = await registry.projects.update('demo', { entriesPerSecond: null, burstBytes: null })
    expect(none.limits).toBeUndefined()
  })

  it('are all rejected when one of them is invalid', async () => {
    for (const values of [
      { entriesPerSecond: -1 },
      { entriesPerSecond: 0.5 },
      { burstEntries: 0 },
      { bytesPerSecond: 1_023 },
      { entriesPerSecond: 5, burstBytes: 1 },
      { entriesPerSecond: '' as unknown as number },
      { entriesPerSecond: 5, retentionDays: 8 },
    ])
      await expect(registry.projects.update('demo', values)).rejects.toThrow(RegistryError)
    expect((await registry.projects.find('demo'))?.limits).toBeUndefined()
  })

  it('are rejected for a project that does not exist', async () => {
    for (const id of ['unknown', '', 'DEMO']) {
      const change = registry.projects.update(id, { entriesPerSecond: 5 })
      await expect(change).rejects.toThrow('there is no project')
      expect(await fixture.redis.exists(`${fixture.prefix}:project:${id}`)).toBe(0)
    }
  })
})

describe('deleting a project', () => {
  const KEPT_MS = (7 + 2) * 86_400_000

  beforeEach(async () => {
    // Redis expires keys by its own clock.
    fixture.nowMs = Date.now()
    await registry.projects.create('demo', 7)
  })

  it('keeps its keys without a project and its id reserved until its rows have expired', async () => {
    const { key, record } = await registry.keys.create('demo')
    expect(await registry.projects.delete('demo')).toEqual(new Date(fixture.nowMs + KEPT_MS))
    expect(await registry.projects.find('demo')).toBeUndefined()
    expect(await registry.projects.list()).toEqual([])
    expect(await registry.keys.list('demo')).toEqual([])
    expect(await registry.keys.find(hashApiKey(key))).toEqual({
      ...record,
      deletedAt: new Date(fixture.nowMs).toISOString(),
    })
    const freeOn = new Date(fixture.nowMs + KEPT_MS).toISOString()
    await expect(registry.projects.create('demo')).rejects.toThrow(`free again on ${freeOn}`)
    await expect(registry.keys.create('demo')).rejects.toThrow('there is no project demo')
    await expect(registry.keys.revoke(record.id)).rejects.toThrow('there is no key')
    await expect(registry.projects.delete('demo')).rejects.toThrow('there is no project demo')
  })

  it('keeps its id reserved until rows of the longest retention that it had have expired, also after an import', async () => {
    const startMs = fixture.nowMs
    const inDays = (days: number) => new Date(startMs + days * 86_400_000)
    const changed = await registry.projects.update('demo', { retentionDays: 90 })
    expect(changed).toMatchObject({ retentionDays: 90, rowsUntil: inDays(7 + 2).toISOString() })
    await registry.projects.update('demo', { retentionDays: 1 })
    fixture.nowMs += 30 * 86_400_000
    await registry.projects.update('demo', { retentionDays: 3, burstEntries: 5 })
    const backup = await exportDemo()
    expect(backup).toMatchObject({ retentionDays: 3, rowsUntil: inDays(90 + 2).toISOString() })
    expect(await registry.projects.delete('demo')).toEqual(inDays(90 + 2))
    const { rowsUntil: _unknown, ...older } = backup
    await registry.projects.import(older)
    expect(await registry.projects.delete('demo')).toEqual(inDays(90 + 2))
    fixture.nowMs += 88 * 86_400_000
    await registry.projects.import(backup)
    expect(await registry.projects.delete('demo')).toEqual(inDays(30 + 88 + 3 + 2))
  })

  it('leaves nothing in Redis beyond that time', async () => {
    const { key } = await registry.keys.create('demo')
    await registry.keys.recordUses(new Map([[hashApiKey(key), fixture.nowMs]]))
    await registry.projects.delete('demo')
    await registry.keys.recordUses(new Map([[hashApiKey(key), fixture.nowMs + 1_000]]))
    const left = await fixture.redisKeys()
    expect(left).toHaveLength(2)
    for (const name of left) expect(await fixture.redis.pexpiretime(name)).toBe(fixture.nowMs + KEPT_MS)
  })

  it('frees its id after that time, and its old keys stay deleted', async () => {
    fixture.nowMs = Date.now() - KEPT_MS + 2_000
    const { key } = await registry.keys.create('demo')
    await registry.projects.delete('demo')
    await expect(registry.projects.create('demo')).rejects.toThrow('free again')
    const create = (): Promise<unknown> => registry.projects.create('demo').catch((error: unknown) => error)
    await expect.poll(create, { interval: 50 }).toMatchObject({ id: 'demo' })
    expect(await registry.keys.find(hashApiKey(key))).toBeUndefined()
  })

  it('leaves no partial state when it races with creating, rotating and revoking keys and with disabling', async () => {
    for (let round = 0; round < 20; round += 1) {
      const id = `race-${round}`
      await registry.projects.create(id, 7)
      const { record } = await registry.keys.create(id)
      const racing = [
        registry.keys.create(id),
        registry.keys.rotate(record.id, 0),
        registry.projects.delete(id),
        registry.keys.revoke(record.id),
        registry.projects.update(id, { enabled: false }),
        registry.keys.create(id),
      ]
      await Promise.allSettled(racing.slice(round % 3).concat(racing.slice(0, round % 3)))
      const left = await fixture.redisKeys()
      for (const name of left.filter((key) => !key.includes('project:demo') && !key.endsWith('projects'))) {
        expect([name, await fixture.redis.pexpiretime(name)]).toEqual([name, fixture.nowMs + KEPT_MS])
      }
    }
  })
})

const exportDemo = async (): Promise<ProjectBackup> => {
  const project = await registry.projects.find('demo')
  if (project === undefined) throw new Error('the project does not exist')
  return { ...project, keys: await registry.keys.export('demo') }
}
const stateOf = async (key: string): Promise<string | undefined> => {
  const record = await registry.keys.find(hashApiKey(key))
  return record && keyState(record, fixture.nowMs)
}

describe('importing a deleted project', () => {
  beforeEach(async () => {
    // Redis expires keys by its own clock.
    fixture.nowMs = Date.now()
    await registry.projects.create('demo', 7)
  })

  it('activates the keys of the backup, and no key that was created after it', async () => {
    const kept = await registry.keys.create('demo')
    const backup = await exportDemo()
    const later = await registry.keys.create('demo')
    await registry.projects.delete('demo')
    expect(await registry.projects.import(backup)).toBe(true)
    expect(await registry.keys.list('demo')).toEqual([kept.record])
    expect(await fixture.redis.pttl(`${fixture.prefix}:key:${hashApiKey(kept.key)}`)).toBe(-1)
    expect([await stateOf(kept.key), await stateOf(later.key)]).toEqual(['active', 'revoked'])
    await expect(registry.keys.rotate(later.record.id, 0)).rejects.toThrow('there is no key')
  })

  it('keeps keys revoked or rotated that were revoked or rotated after the backup', async () => {
    const [revoked, rotated] = [await registry.keys.create('demo'), await registry.keys.create('demo')]
    const expiring = await registry.keys.create('demo', { expiresAt: new Date(fixture.nowMs + 1_000) })
    const backup = await exportDemo()
    await registry.keys.revoke(revoked.record.id)
    const { record, replaced } = await registry.keys.rotate(rotated.record.id, 0)
    await registry.keys.rotate(expiring.record.id, 60_000)
    await registry.projects.delete('demo')
    await registry.projects.import(backup)
    expect(await stateOf(revoked.key)).toBe('revoked')
    expect(await stateOf(rotated.key)).toBe('expired')
    expect(await registry.keys.find(hashApiKey(rotated.key))).toEqual(replaced)
    expect(replaced.replacedBy).toBe(record.id)
    expect(await registry.keys.find(hashApiKey(expiring.key))).toMatchObject({
      expiresAt: expiring.record.expiresAt,
    })
  })
  it('changes nothing if one of the keys belongs to another project, deleted or not', async () => {
    await registry.keys.create('demo')
    const backup = { ...(await exportDemo()), id: 'copy' }
    const before = await registry.keys.export('demo')
    const reason = 'belongs to the project demo'
    await expect(registry.projects.import(backup)).rejects.toThrow(reason)
    expect(await registry.keys.export('demo')).toEqual(before)
    expect(await registry.keys.list('demo')).toMatchObject([{ projectId: 'demo' }])
    expect(await registry.projects.find('copy')).toBeUndefined()
    await registry.projects.delete('demo')
    await expect(registry.projects.import(backup)).rejects.toThrow(reason)
  })

  it('changes nothing if one of the keys has the id of a key of another project', async () => {
    const { record } = await registry.keys.create('demo')
    const project = { id: 'copy', createdAt: record.createdAt, enabled: true, retentionDays: 7 }
    const { projectId: _id, ...fields } = record
    const keys = [{ ...fields, hash: record.id.slice(4).padEnd(64, '0') }]
    await expect(registry.projects.import({ ...project, keys })).rejects.toThrow(
      'belongs to the project demo',
    )
    expect(await registry.projects.find('copy')).toBeUndefined()
    await registry.keys.revoke(record.id)
    expect(await registry.keys.list('demo')).toMatchObject([{ revokedAt: expect.any(String) as string }])
  })
})
