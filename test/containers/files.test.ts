import { officialImages } from '@sluice/harness/container-services'
import { execFileSync } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { nodeOptions } from '../../packages/local/src/apps.ts'

const root = new URL('../../', import.meta.url)
const read = (path: string): Promise<string> => readFile(new URL(path, root), 'utf8')

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
}

/** The folders of packages, and of the workspace packages that they depend on, relative to the root. */
async function foldersOf(folders: readonly string[], found = new Set<string>()): Promise<Set<string>> {
  for (const folder of folders) {
    if (found.has(folder)) continue
    found.add(folder)
    const { dependencies = {} } = JSON.parse(await read(`${folder}/package.json`)) as Manifest
    const own = Object.keys(dependencies).filter((name) => name.startsWith('@sluice/'))
    await foldersOf(
      own.map((name) => `packages/${name.slice('@sluice/'.length)}`),
      found,
    )
  }
  return found
}

it('the Dockerfile copies the manifests of exactly the packages that the images need', async () => {
  const dockerfile = await read('Dockerfile')
  const copied = [...dockerfile.matchAll(/^COPY (\S+)\/package\.json \1\/$/gm)].map(([, folder]) => folder)
  const apps = ['api', 'cli', 'explorer', 'query', 'worker']
  const needed = await foldersOf(apps.map((name) => `apps/${name}`))
  expect(new Set(copied)).toEqual(needed)
})

it.each(['api', 'query', 'worker'] as const)(
  'the image of the %s has the options of Node that npm start uses',
  async (role) => {
    const command = ['node', ...nodeOptions[role], `apps/${role}/src/main.ts`].map((part) => `"${part}"`)
    expect(await read('Dockerfile')).toContain(`\nENTRYPOINT [${command.join(', ')}]\n`)
  },
)

it('the image of the query process has the explorer where this process looks for it, bundled from the lockfile', async () => {
  const [dockerfile, main] = await Promise.all(['Dockerfile', 'apps/query/src/main.ts'].map(read))
  const stages = (dockerfile ?? '').split(/^(?=FROM )/m)
  const [bundle, image] = ['dependencies AS explorer', 'service AS query'].map((from) =>
    stages.find((stage) => stage.startsWith(`FROM ${from}\n`)),
  )
  expect(bundle).toContain(' install --frozen-lockfile ')
  expect(bundle).toMatch(/^RUN node apps\/explorer\/build\.mjs$/m)
  expect(image).toContain('\nCOPY --from=explorer /sluice/apps/explorer/dist apps/explorer/dist\n')
  expect(main).toContain("new URL('../../explorer/dist', import.meta.url)")
  // A bundle of this machine must not be copied next to it.
  expect(await read('.dockerignore')).toMatch(/^\*\*\/dist$/m)
})

it('Compose and the container tests use the same images', async () => {
  const [compose, check, dockerfile] = await Promise.all(
    ['docker-compose.yml', 'tools/has-images.sh', 'Dockerfile'].map(read),
  )
  const [, node = ''] = /^ARG NODE_IMAGE=(\S+)$/m.exec(dockerfile ?? '') ?? []
  expect(node).toMatch(/^node:/)
  for (const image of Object.values(officialImages)) expect(compose).toContain(`:-${image}}`)
  for (const image of [node, ...Object.values(officialImages)]) expect(check).toContain(image)
})

interface Service {
  readonly [name: string]: unknown
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly depends_on?: Readonly<Record<string, unknown>>
}

const { services } = parse(await read('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>
}

describe('every service of Compose', () => {
  /** Those that give each volume to its user. */
  const owners = ['volumes', 'monitoring-volumes']
  /** With a volume: the service that must have ended before. */
  const ownerOf = {
    redis: 'volumes',
    clickhouse: 'volumes',
    prometheus: 'monitoring-volumes',
    grafana: 'monitoring-volumes',
  }

  it.each(Object.entries(services))('%s has limits of privileges, memory and processes', (name, service) => {
    expect(service).toMatchObject({ cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] })
    expect(service['mem_limit']).toBeTruthy()
    expect(service['pids_limit']).toBeGreaterThan(0)
    expect(service['privileged']).toBeUndefined()
    const isOwner = owners.includes(name)
    expect(service['cap_add']).toEqual(isOwner ? ['CHOWN'] : undefined)
    expect(service['network_mode']).toBe(isOwner ? 'none' : undefined)
    expect(service['read_only']).toBe(name === 'clickhouse' ? undefined : true)
  })

  it('is known here, and no image of others goes on as root', async () => {
    const foreign = [...Object.keys(ownerOf), 'proxy']
    const own = ['migrate', 'api', 'query', 'worker', 'cli']
    expect(new Set(Object.keys(services))).toEqual(new Set([...owners, ...foreign, ...own]))
    for (const name of foreign) expect(services[name]?.['user']).toMatch(/^[1-9]\d*:\d+$/)
    expect(await read('Dockerfile')).toMatch(/^USER 1000:1000$/m)
  })

  it('is published only on the loopback address, and API and explorer only through the proxy', () => {
    const published = Object.entries(services).filter(([, { ports }]) => ports !== undefined)
    expect(new Set(published.map(([name]) => name))).toEqual(
      new Set(['clickhouse', 'grafana', 'prometheus', 'proxy']),
    )
    for (const port of published.flatMap(([, { ports = [] }]) => ports))
      expect(port).toMatch(/^(127\.0\.0\.1:|\$\{[A-Z_]+:-127\.0\.0\.1:)/)
  })

  it('knows only the passwords that it uses', async () => {
    const reader = await read('deploy/compose/clickhouse-reader.xml')
    expect(reader).toContain('<readonly>2</readonly>')
    for (const name of ['PASSWORD', 'GRANT']) expect(reader).toContain(`from_env="CLICKHOUSE_READER_${name}"`)
    expect(services['clickhouse']?.volumes).toContainEqual(expect.stringContaining('/clickhouse-reader.xml:'))
    const passwords = (name: string): unknown =>
      Object.fromEntries(
        Object.entries(services[name]?.['environment'] ?? {})
          .filter(([variable]) => variable.startsWith('CLICKHOUSE_') && variable.endsWith('_PASSWORD'))
          .map(([variable, value]) => [variable, String(value).replace(/:\?.*\}$/, '}')]),
      )
    const reading = { CLICKHOUSE_READER_PASSWORD: '', CLICKHOUSE_PASSWORD: '${CLICKHOUSE_READER_PASSWORD}' }
    expect(passwords('query')).toEqual(reading)
    expect(passwords('api')).toEqual({ CLICKHOUSE_READER_PASSWORD: '', CLICKHOUSE_PASSWORD: '' })
    // Its own is in .env.
    expect(passwords('worker')).toEqual({ CLICKHOUSE_READER_PASSWORD: '' })
  })

  it.each(Object.entries(ownerOf))('%s starts after %s gave it its volume', (name, owner) => {
    const mount = new RegExp(`^${name}-data:[a-z/]+:nocopy\\b`)
    for (const each of [name, owner])
      expect(services[each]?.volumes).toContainEqual(expect.stringMatching(mount))
    expect(services[name]?.depends_on).toMatchObject({
      [owner]: { condition: 'service_completed_successfully' },
    })
  })
})

it('the documented command creates different passwords in a file that only its owner can read', async () => {
  const [, command = ''] = /^# +(\(umask .* > \.env\))$/m.exec(await read('.env.example')) ?? []
  for (const path of ['docker-compose.yml', 'docs/containers.md']) expect(await read(path)).toContain(command)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-env-'))
  try {
    await copyFile(fileURLToPath(new URL('.env.example', root)), join(folder, '.env.example'))
    // Replaces openssl, which may not be installed.
    const openssl = `openssl() { "$NODE" -e "console.log(require('node:crypto').randomBytes(24).toString('hex'))"; }\n`
    const env = { PATH: process.env['PATH'], NODE: process.execPath }
    execFileSync('/bin/sh', ['-c', openssl + command], { cwd: folder, env })
    const text = await readFile(join(folder, '.env'), 'utf8')
    const passwords = [...text.matchAll(/^([A-Z_]+)_PASSWORD=(.*)$/gm)].map(([, name, value]) => [
      name,
      value,
    ])
    expect(passwords.map(([name]) => name)).toEqual(['CLICKHOUSE', 'CLICKHOUSE_READER', 'REDIS', 'GRAFANA'])
    for (const [, password] of passwords) expect(password).toMatch(/^[0-9a-f]{48}$/)
    expect(new Set(passwords.map(([, password]) => password)).size).toBe(4)
    expect((await stat(join(folder, '.env'))).mode & 0o777).toBe(0o600)
  } finally {
    await rm(folder, { recursive: true })
  }
})
