import { hashApiKey, Registry } from '@sluice/projects'
import { connectRedis, installationNames } from '@sluice/runtime'
import { expect, test } from 'vitest'
import { run } from '../../src/run.ts'
import { testInstallation } from '../installation.ts'

const { context, sluice, objects, failing, redisUrl, prefix } = testInstallation()

test('a key is created, listed with its last use, and revoked', async () => {
  await sluice('projects', 'create', 'shop')
  const flags = ['--project', 'shop', '--name', 'web', '--expires-in', '90d', '--scope', 'ingest,read']
  const [created] = await objects('keys', 'create', ...flags)
  expect(created).toMatchObject({ projectId: 'shop', name: 'web', scopes: ['ingest', 'read'] })
  const key = String(created?.['key'])
  expect(key).toMatch(/^slk_[0-9A-Za-z]{49}$/)

  const redis = connectRedis(redisUrl, { failFast: false })
  const registry = new Registry(redis, installationNames(prefix).registryPrefix)
  await registry.keys.recordUses(new Map([[hashApiKey(key), Date.UTC(2026, 0, 1)]]))
  redis.disconnect()
  await sluice('keys', 'revoke', String(created?.['id']))
  expect(await sluice('keys', 'list', '--project', 'shop')).toMatch(
    /^KEY +STATE +SCOPES .* LAST USED +NAME\n.* revoked +ingest read .* 2026-01-01T00:00:00.000Z +web\n$/,
  )
  expect(await sluice('keys', 'list', '--project', 'shop', '--json')).not.toContain(key)
})

test('a key is rotated: the old key stays valid for a while, and the new key is printed once', async () => {
  await sluice('projects', 'create', 'rotated')
  const [old] = await objects('keys', 'create', '--project', 'rotated', '--name', 'web', '--scope', 'read')
  const used = context()
  const beforeMs = Date.now()
  expect(await run(['keys', 'rotate', String(old?.['id']), '--overlap', '2h'], used)).toBe(0)
  expect(used.written.stdout).toMatch(/^slk_[0-9A-Za-z]{49}\n$/)
  const [first, second] = await objects('keys', 'list', '--project', 'rotated')
  expect(first).toMatchObject({ id: old?.['id'], state: 'active', replacedBy: second?.['id'] })
  expect(Date.parse(String(first?.['expiresAt']))).toBeGreaterThanOrEqual(beforeMs + 2 * 3_600_000)
  expect(second).toMatchObject({ name: 'web', scopes: ['read'], state: 'active' })
  expect(second).not.toHaveProperty('expiresAt')
  const [third] = await objects('keys', 'rotate', String(second?.['id']))
  expect(third).toMatchObject({ name: 'web', replaced: { id: second?.['id'] }, key: expect.any(String) })
})

test('a new key is printed to stdout alone, and its scopes to stderr', async () => {
  await sluice('projects', 'create', 'scoped')
  const used = context()
  expect(await run(['keys', 'create', '--project', 'scoped'], used)).toBe(0)
  expect(used.written.stderr).toContain('of the project scoped with the scope ingest. It is not shown again')
  expect(used.written.stdout).toMatch(/^slk_[0-9A-Za-z]{49}\n$/)
})

test.each([
  [['create', '--project', 'nowhere'], 'there is no project nowhere'],
  [['list', '--project', 'nowhere'], 'there is no project nowhere'],
  [['revoke', 'key_0'], 'there is no key key_0'],
  [['rotate', 'key_0'], 'there is no key key_0'],
])('a rejected command reports the reason: keys %j', async (args, reason) => {
  expect(await failing(['keys', ...args])).toContain(`sluice: ${reason}`)
})
