import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { Registry } from '@sluice/projects'
import { connectRedis, installationNames } from '@sluice/runtime'
import { expect, onTestFinished, test } from 'vitest'
import { run } from '../../src/run.ts'
import { testInstallation } from '../installation.ts'

const source = testInstallation()
const target = testInstallation()

/** Runs `projects import` with a backup as stdin. @returns its exit code and its output */
async function importInto({ context }: typeof source, backup: string) {
  const used = context({}, { stdin: Readable.from([backup]) })
  return { code: await run(['projects', 'import', '-'], used), ...used.written }
}

test('projects, limits and keys are the same in another installation, without the keys themselves', async () => {
  await source.sluice('projects', 'create', 'shop', '--retention-days', '90')
  const limits = ['--entries-per-second', '1000', '--bytes-per-second', 'unlimited']
  await source.sluice('projects', 'update', 'shop', ...limits)
  await source.sluice('projects', 'update', 'shop', '--retention-days', '30')
  await source.sluice('projects', 'create', 'empty')
  await source.sluice('projects', 'disable', 'empty')
  const flags = ['--project', 'shop', '--name', 'web', '--scope', 'read']
  const [created] = await source.objects('keys', 'create', ...flags)
  const backup = await source.sluice('projects', 'export')
  expect(backup).not.toContain(String(created?.['key']).slice(4))

  const lost = await registryOf(target)
  await lost.identity.reconcile('another')
  expect(await lost.identity.read()).toBe('lost')
  expect(await importInto(target, backup)).toMatchObject({
    stdout: 'Imported the project empty with 0 keys.\nImported the project shop with 1 keys.\n',
  })
  expect(await target.objects('keys', 'list', '--project', 'shop')).toEqual(
    await source.objects('keys', 'list', '--project', 'shop'),
  )
  expect(await target.sluice('projects', 'export')).toBe(backup)
  expect(await lost.identity.read()).toBe('known')
})

test('projects that are not those of the installation are accepted by a command', async () => {
  const { identity } = await registryOf(source)
  await identity.reconcile('another')
  expect(await identity.read()).toBe('foreign')
  await source.sluice('projects', 'accept')
  expect(await identity.read()).toBe('known')
})

async function registryOf({ redisUrl, prefix }: typeof source): Promise<Registry> {
  const redis = connectRedis(redisUrl, { failFast: false })
  onTestFinished(() => redis.disconnect())
  return new Registry(redis, installationNames(prefix).registryPrefix)
}

test('a deleted project is restored with its keys, and those revoked since then stay revoked', async () => {
  await source.sluice('projects', 'create', 'deleted')
  await source.sluice('keys', 'create', '--project', 'deleted', '--name', 'kept')
  const [leaked] = await source.objects('keys', 'create', '--project', 'deleted', '--name', 'leaked')
  const backup = await source.sluice('projects', 'export')
  await source.sluice('keys', 'revoke', String(leaked?.['id']))
  await source.sluice('projects', 'delete', 'deleted', '--yes')
  expect(await importInto(source, backup)).toMatchObject({ code: 0 })
  expect(await source.objects('keys', 'list', '--project', 'deleted')).toMatchObject([
    { name: 'kept', state: 'active' },
    { name: 'leaked', state: 'revoked' },
  ])
})

const key = 'projects[0].keys[0]'
test.each([
  ['{', 'the backup is not valid JSON'],
  ['[]', 'the backup must be an object'],
  ['{"format":"other"}', 'the file is no backup'],
  ['{"format":"sluice-projects","version":2}', 'the backup has the version 2 instead of 1'],
  [projectWith({ id: 'No' }), 'projects[0].id must be the id of a project'],
  [projectWith({ retentionDays: 8 }), 'projects[0].retentionDays must be one of 1, 3, 7,'],
  [projectWith({ enabled: 'yes' }), 'projects[0].enabled must be true or false'],
  [projectWith({ createdAt: '2026-02-30T08:00:00.000Z' }), 'projects[0].createdAt must be a time such as'],
  [projectWith({ limits: { entriesPerSecond: -1 } }), 'projects[0].limits: entriesPerSecond must be a whole'],
  [projectWith({ keys: [{ hash: 'x' }] }), `${key}.hash must be 64 hexadecimal digits`],
  [projectWith({ keys: [keyWith({ expiresAt: '2020-99-99T99:99:99.999Z' })] }), `${key}.expiresAt must be`],
  [
    projectWith({ keys: [keyWith({ id: 'key_0123456789abcdef' })] }),
    `${key}.id must be key_aaaaaaaaaaaaaaaa`,
  ],
  [projectWith({ keys: [keyWith({ scopes: [] })] }), `${key}: a key needs at least one scope`],
  [projectWith({ keys: [keyWith({ scopes: ['all'] })] }), `${key}.scopes must be some of`],
])('an invalid backup changes nothing: %s', async (text, reason) => {
  const before = await target.sluice('projects', 'export')
  expect(await importInto(target, text)).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining(reason),
  })
  expect(await target.sluice('projects', 'export')).toBe(before)
})

test('a project with 10,000 keys is imported as it was exported, and one that exists is left as it is', async () => {
  const keys = Array.from({ length: 10_000 }, (_, i) => {
    const hash = createHash('sha256').update(String(i)).digest('hex')
    const createdAt = new Date(Date.UTC(2026, 10, 23) + i).toISOString()
    return keyWith({ hash, id: `key_${hash.slice(0, 16)}`, name: 'ü "n" \\', createdAt })
  })
  const limits = { bytesPerSecond: 1_000_000_000_000 }
  const backup = projectWith({ id: 'big', limits, keys })
  expect((await importInto(target, backup)).stdout).toBe('Imported the project big with 10000 keys.\n')
  await target.sluice('projects', 'update', 'big', '--entries-per-second', '7')
  expect((await importInto(target, backup)).stdout).toBe('Left the project big as it is: it exists.\n')
  const { projects } = JSON.parse(await target.sluice('projects', 'export')) as { projects: { id: string }[] }
  const expected = { limits: { ...limits, entriesPerSecond: 7 }, keys }
  expect(projects.find(({ id }) => id === 'big')).toMatchObject(expected)
})

function keyWith(fields: object): object {
  const valid = { hash: 'a'.repeat(64), id: 'key_aaaaaaaaaaaaaaaa', name: '', scopes: ['ingest'] }
  return { ...valid, createdAt: '2026-11-23T08:00:00.000Z', ...fields }
}

function projectWith(fields: object): string {
  const project = { id: 'new', createdAt: '2026-11-23T08:00:00.000Z', enabled: true, retentionDays: 30 }
  const projects = [{ ...project, keys: [], ...fields }]
  return JSON.stringify({ format: 'sluice-projects', version: 1, projects })
}
