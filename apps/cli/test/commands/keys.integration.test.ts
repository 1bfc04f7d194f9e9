import { hashApiKey, Registry } from '@sluice/projects'
import { connectRedis, installationNames } from '@sluice/runtime'
import { afterAll, expect, test } from 'vitest'
import { run } from '../../src/run.ts'
import { jsonLines, testInstallation } from '../installation.ts'

const { context, sluice, deleteRedisKeys, redisUrl, prefix } = testInstallation()
afterAll(deleteRedisKeys)

test('a key is created, listed and revoked', async () => {
  await sluice('projects', 'create', 'shop')
  const flags = ['--project', 'shop', '--name', 'web', '--expires-in', '90d', '--scope', 'ingest,read']
  const [created] = jsonLines(await sluice('keys', 'create', ...flags, '--json'))
  expect(created).toMatchObject({ projectId: 'shop', name: 'web', scopes: ['ingest', 'read'] })
  expect(created?.['key']).toMatch(/^slk_[0-9A-Za-z]{49}$/)

  await sluice('keys', 'revoke', String(created?.['id']))
  expect(await sluice('keys', 'list', '--project', 'shop')).toMatch(/ revoked .* web\n$/)
  expect(await sluice('keys', 'list', '--project', 'shop', '--json')).not.toContain(created?.['key'])
})

test('a key is rotated: the old key stays valid for a while, and the new key is printed once', async () => {
  await sluice('projects', 'create', 'rotated')
  const flags = ['--project', 'rotated', '--name', 'web', '--scope', 'read']
  const [old] = jsonLines(await sluice('keys', 'create', ...flags, '--json'))
  const used = context()
  const beforeMs = Date.now()
  expect(await run(['keys', 'rotate', String(old?.['id']), '--overlap', '2h'], used)).toBe(0)
  expect(used.written.stdout).toMatch(/^slk_[0-9A-Za-z]{49}\n$/)
  expect(used.written.stderr).toContain(`to replace ${String(old?.['id'])}`)
  const [first, second] = jsonLines(await sluice('keys', 'list', '--project', 'rotated', '--json'))
  expect(first).toMatchObject({ id: old?.['id'], state: 'active', replacedBy: second?.['id'] })
  const overlapMs = Date.parse(String(first?.['expiresAt'])) - beforeMs
  expect(overlapMs).toBeGreaterThanOrEqual(2 * 3_600_000)
  expect(overlapMs).toBeLessThan(3 * 3_600_000)
  expect(second).toMatchObject({ name: 'web', scopes: ['read'], state: 'active' })
  expect(second).not.toHaveProperty('expiresAt')

  const [third] = jsonLines(await sluice('keys', 'rotate', String(second?.['id']), '--json'))
  expect(third).toMatchObject({ name: 'web', replaced: { id: second?.['id'] } })
  expect(third?.['key']).toMatch(/^slk_/)
})

test.each([
  [[], 'with the scope ingest.', /^KEY +STATE +SCOPES .*\n.* active +ingest +/],
  [['--scope', 'read'], 'with the scope read.', / active +read +/],
  [['--scope', 'read', '--scope', 'ingest'], 'with the scopes read, ingest.', / active +read ingest +/],
])(
  'a new key is printed to stdout alone, and its scopes to stderr and in the list of keys: %j',
  async (flags, sentence, row) => {
    const project = `scoped-${flags.length}`
    await sluice('projects', 'create', project)
    const used = context()
    expect(await run(['keys', 'create', '--project', project, ...flags], used)).toBe(0)
    expect(used.written.stderr).toContain(`of the project ${project} ${sentence} It is not shown again`)
    expect(used.written.stdout).toMatch(/^slk_[0-9A-Za-z]{49}\n$/)
    expect(await sluice('keys', 'list', '--project', project)).toMatch(row)
  },
)

test('the list of keys shows when they were last used', async () => {
  await sluice('projects', 'create', 'used')
  const [created] = jsonLines(await sluice('keys', 'create', '--project', 'used', '--name', 'x', '--json'))
  expect(await sluice('keys', 'list', '--project', 'used')).toMatch(
    /^KEY .* LAST USED +NAME\n.* never +never +x\n$/,
  )
  const redis = connectRedis(redisUrl, { failFast: false })
  const registry = new Registry(redis, installationNames(prefix).registryPrefix)
  await registry.keys.recordUses(new Map([[hashApiKey(String(created?.['key'])), Date.UTC(2026, 0, 1)]]))
  redis.disconnect()
  expect(await sluice('keys', 'list', '--project', 'used')).toMatch(/ never +2026-01-01T00:00:00.000Z +x\n$/)
})

test.each([
  [['keys', 'create', '--project', 'nowhere'], 'there is no project nowhere'],
  [['keys', 'list', '--project', 'nowhere'], 'there is no project nowhere'],
  [['keys', 'revoke', 'key_0'], 'there is no key key_0'],
  [['keys', 'rotate', 'key_0'], 'there is no key key_0'],
])('a rejected command reports the reason: %j', async (args, reason) => {
  const used = context()
  expect(await run(args, used)).toBe(1)
  expect(used.written.stderr).toContain(`sluice: ${reason}`)
})
