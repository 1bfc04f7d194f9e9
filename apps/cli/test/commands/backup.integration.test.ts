import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { run } from '../../src/run.ts'
import { jsonLines, testInstallation } from '../installation.ts'

const source = testInstallation()
const target = testInstallation()
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-backup-'))
})

afterAll(async () => {
  await source.deleteRedisKeys()
  await target.deleteRedisKeys()
  await rm(folder, { recursive: true })
})

async function save(text: string): Promise<string> {
  const file = join(folder, `${Math.random()}.json`)
  await writeFile(file, text)
  return file
}

const createKey = async (installation: typeof source, ...flags: string[]): Promise<string> =>
  /slk_\w+/.exec(await installation.sluice('keys', 'create', ...flags))?.[0] ?? ''

test('projects, limits and keys are the same in another installation, without the keys themselves', async () => {
  await source.sluice('projects', 'create', 'shop', '--retention-days', '90')
  await source.sluice(
    'projects',
    'update',
    'shop',
    '--entries-per-second',
    '1000',
    '--bytes-per-second',
    'unlimited',
  )
  await source.sluice('projects', 'create', 'empty')
  await source.sluice('projects', 'disable', 'empty')
  const key = await createKey(source, '--project', 'shop', '--name', 'web', '--scope', 'read')
  expect(key).not.toBe('')
  const backup = await source.sluice('projects', 'export')
  expect(backup).not.toContain(key.slice(4))

  const imported = await target.sluice('projects', 'import', await save(backup))
  expect(imported).toBe('Imported the project empty with 0 keys.\nImported the project shop with 1 keys.\n')
  for (const command of [
    ['projects', 'list'],
    ['keys', 'list', '--project', 'shop'],
  ])
    expect(jsonLines(await target.sluice(...command, '--json'))).toEqual(
      jsonLines(await source.sluice(...command, '--json')),
    )
  expect(await target.sluice('projects', 'export')).toBe(backup)
})

test('projects that exist stay as they are', async () => {
  const backup = await save(await source.sluice('projects', 'export'))
  await target.sluice('projects', 'update', 'shop', '--entries-per-second', '7')
  expect(await target.sluice('projects', 'import', backup)).toContain(
    'Left the project shop as it is: it exists.\n',
  )
  expect(jsonLines(await target.sluice('projects', 'list', '--json'))).toContainEqual(
    expect.objectContaining({ id: 'shop', limits: expect.objectContaining({ entriesPerSecond: 7 }) }),
  )
})

test('a deleted project is restored with its keys, and those revoked since then stay revoked', async () => {
  await source.sluice('projects', 'create', 'deleted')
  await createKey(source, '--project', 'deleted', '--name', 'kept')
  await createKey(source, '--project', 'deleted', '--name', 'leaked')
  const backup = await source.sluice('projects', 'export')
  const [, leaked] = jsonLines(await source.sluice('keys', 'list', '--project', 'deleted', '--json')) as {
    id: string
  }[]
  await source.sluice('keys', 'revoke', leaked?.id ?? '')
  await source.sluice('projects', 'delete', 'deleted', '--yes')

  const used = source.context({}, { stdin: Readable.from([backup]) })
  expect(await run(['projects', 'import', '-'], used)).toBe(0)
  expect(jsonLines(await source.sluice('keys', 'list', '--project', 'deleted', '--json'))).toMatchObject([
    { name: 'kept', state: 'active' },
    { name: 'leaked', state: 'revoked' },
  ])
})

test('a project with 10,000 keys is imported as it was exported, and is left as it is the second time', async () => {
  const keys = Array.from({ length: 10_000 }, (_, i) => {
    const hash = createHash('sha256').update(String(i)).digest('hex')
    const createdAt = new Date(Date.UTC(2026, 10, 23) + i).toISOString()
    return { hash, id: `key_${hash.slice(0, 16)}`, name: 'ü "n" \\', scopes: ['ingest', 'read'], createdAt }
  })
  const file = await save(projectWith({ id: 'big', limits: { bytesPerSecond: 1_000_000_000_000 }, keys }))
  expect(await target.sluice('projects', 'import', file)).toBe('Imported the project big with 10000 keys.\n')
  expect(await target.sluice('projects', 'import', file)).toBe('Left the project big as it is: it exists.\n')
  const { projects } = JSON.parse(await target.sluice('projects', 'export')) as { projects: { id: string }[] }
  expect(projects.find(({ id }) => id === 'big')).toMatchObject({
    limits: { bytesPerSecond: 1_000_000_000_000 },
    keys,
  })
  await target.sluice('projects', 'delete', 'big', '--yes')
})

test.each([
  ['{', 'the backup is not valid JSON'],
  ['[]', 'the backup must be an object'],
  ['{"format":"other"}', 'the file is no backup'],
  ['{"format":"sluice-projects","version":2}', 'the backup has the version 2 instead of 1'],
  [projectWith({ id: 'No' }), 'projects[0].id must be the id of a project'],
  [projectWith({ retentionDays: 8 }), 'projects[0].retentionDays must be one of 1, 3, 7,'],
  [projectWith({ enabled: 'yes' }), 'projects[0].enabled must be true or false'],
  [projectWith({ createdAt: 'today' }), 'projects[0].createdAt must be a time such as'],
  [
    projectWith({ limits: { entriesPerSecond: -1 } }),
    'projects[0].limits: entriesPerSecond must be a whole number',
  ],
  [projectWith({ keys: [{ hash: 'x' }] }), 'projects[0].keys[0].hash must be 64 hexadecimal digits'],
  [projectWith({ createdAt: '2026-02-30T08:00:00.000Z' }), 'projects[0].createdAt must be a time such as'],
  [
    projectWith({ keys: [keyWith({ expiresAt: '2020-99-99T99:99:99.999Z' })] }),
    'projects[0].keys[0].expiresAt must be a time such as',
  ],
  [
    projectWith({ keys: [keyWith({ id: 'key_0123456789abcdef' })] }),
    'projects[0].keys[0].id must be key_aaaaaaaaaaaaaaaa, which follows from its hash',
  ],
  [
    projectWith({ keys: [keyWith({ name: 'n'.repeat(201) })] }),
    "projects[0].keys[0]: a key's name has at most 200 characters",
  ],
  [projectWith({ keys: [keyWith({ scopes: [] })] }), 'projects[0].keys[0]: a key needs at least one scope'],
  [projectWith({ keys: [keyWith({ scopes: ['all'] })] }), 'projects[0].keys[0].scopes must be some of'],
  [
    projectWith({ keys: [keyWith({}), keyWith({})] }),
    'projects[0].keys[1].id is the same as projects[0].keys[0].id',
  ],
  [backupOf([{}, { id: 'b' }, {}]), 'projects[2].id is the same as projects[0].id'],
  [
    backupOf([{ keys: [keyWith({})] }, { id: 'b', keys: [keyWith({})] }]),
    'projects[1].keys[0].id is the same as projects[0].keys[0].id',
  ],
])('an invalid backup changes nothing: %s', async (text, reason) => {
  const before = await target.sluice('projects', 'export')
  const used = target.context()
  expect(await run(['projects', 'import', await save(text)], used)).toBe(1)
  expect(used.written.stderr).toContain(reason)
  expect(await target.sluice('projects', 'export')).toBe(before)
})

function keyWith(fields: object): object {
  const key = { hash: 'a'.repeat(64), id: 'key_aaaaaaaaaaaaaaaa', name: '', scopes: ['ingest'] }
  return { ...key, createdAt: '2026-11-23T08:00:00.000Z', ...fields }
}

function projectWith(fields: object): string {
  return backupOf([fields])
}

function backupOf(changes: readonly object[]): string {
  const project = { id: 'new', createdAt: '2026-11-23T08:00:00.000Z', enabled: true, retentionDays: 30 }
  const projects = changes.map((fields) => ({ ...project, keys: [], ...fields }))
  return JSON.stringify({ format: 'sluice-projects', version: 1, projects })
}
