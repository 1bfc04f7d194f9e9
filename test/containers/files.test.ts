import { officialImages } from '@sluice/harness/container-services'
import { execFileSync } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
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
  const needed = await foldersOf(['apps/api', 'apps/cli', 'apps/worker'])
  expect(new Set(copied)).toEqual(needed)
})

it.each(['api', 'worker'] as const)(
  'the image of the %s has the options of Node that npm start uses',
  async (role) => {
    const command = ['node', ...nodeOptions[role], `apps/${role}/src/main.ts`].map((part) => `"${part}"`)
    expect(await read('Dockerfile')).toContain(`\nENTRYPOINT [${command.join(', ')}]\n`)
  },
)

it('Compose and the container tests use the same images', async () => {
  const [compose, check, dockerfile] = await Promise.all(
    ['docker-compose.yml', 'tools/has-images.sh', 'Dockerfile'].map(read),
  )
  const [, node = ''] = /^ARG NODE_IMAGE=(\S+)$/m.exec(dockerfile ?? '') ?? []
  expect(node).toMatch(/^node:/)
  for (const image of Object.values(officialImages)) expect(compose).toContain(`:-${image}}`)
  for (const image of [node, ...Object.values(officialImages)]) expect(check).toContain(image)
})

/** The services of docker-compose.yml as text, each with the lines of the block that it merges. */
async function readServices(): Promise<ReadonlyMap<string, string>> {
  const compose = await read('docker-compose.yml')
  const blocks = new Map(
    [...compose.matchAll(/^x-[a-z]+: &([a-z]+)\n((?: .*\n|\n)*)/gm)].map(([, name, text = '']) => [
      name,
      text,
    ]),
  )
  const [, services = ''] = /^services:\n([^]*?)^volumes:/m.exec(compose) ?? []
  return new Map(
    services.split(/^ {2}(?=[a-z-]+:$)/m).flatMap((text): [string, string][] => {
      const [, name] = /^([a-z-]+):\n/.exec(text) ?? []
      const [, merged] = /^ {4}<<: \*([a-z]+)$/m.exec(text) ?? []
      return name === undefined ? [] : [[name, (blocks.get(merged) ?? '') + text]]
    }),
  )
}

describe('every service of Compose', () => {
  const others = ['redis', 'clickhouse', 'proxy', 'prometheus', 'grafana']
  const names = ['migrate', 'api', 'worker', 'cli', ...others]
  const owners = ['volumes', 'monitoring-volumes']

  it.each([...names, ...owners])('%s has limits of privileges, memory and processes', async (name) => {
    const service = (await readServices()).get(name)
    for (const line of [
      /^ +cap_drop: \[ALL\]$/m,
      /^ +security_opt: \['no-new-privileges:true'\]$/m,
      /^ +mem_limit: \S+$/m,
      /^ +pids_limit: \d+$/m,
    ])
      expect(service).toMatch(line)
    expect(service).not.toMatch(/^ +privileged:/m)
  })

  it('has no capability, except the one that gives the volumes to their users', async () => {
    const services = await readServices()
    for (const name of names) expect(services.get(name)).not.toMatch(/^ +cap_add:/m)
    for (const name of owners) {
      expect(services.get(name)).toMatch(/^ +cap_add: \[CHOWN\]$/m)
      expect(services.get(name)).toMatch(/^ +network_mode: none$/m)
    }
  })

  it('is published only on the loopback address, and the API only through the proxy', async () => {
    const published = [...(await readServices())].flatMap(([name, service]) =>
      [...service.matchAll(/^ +ports: \['(.*)'\]$/gm)].map(([, port = '']): [string, string] => [name, port]),
    )
    expect(published.map(([name]) => name).toSorted()).toEqual([
      'clickhouse',
      'grafana',
      'prometheus',
      'proxy',
    ])
    for (const [, port] of published) expect(port).toMatch(/^(127\.0\.0\.1:|\$\{[A-Z_]+:-127\.0\.0\.1:)/)
  })

  it('starts after it has its volume, and Docker does not change the owner', async () => {
    const services = await readServices()
    const owner = {
      redis: 'volumes',
      clickhouse: 'volumes',
      prometheus: 'monitoring-volumes',
      grafana: 'monitoring-volumes',
    }
    for (const [name, condition] of Object.entries(owner)) {
      expect(services.get(name)).toMatch(new RegExp(`[ '-]${name}-data:[a-z/]+:nocopy\\b`))
      expect(services.get(name)).toContain(
        `\n      ${condition}: { condition: service_completed_successfully }\n`,
      )
      expect(services.get(condition)).toMatch(new RegExp(`'${name}-data:[a-z/]+:nocopy'`))
    }
  })

  it('is one of those, and none that goes on is root: the images of others may start as root by default', async () => {
    const services = await readServices()
    expect([...services.keys()].toSorted()).toEqual([...owners, ...names].toSorted())
    for (const name of others) expect(services.get(name)).toMatch(/^ +user: '[1-9]\d*:\d+'$/m)
    expect(await read('Dockerfile')).toMatch(/^USER 1000:1000$/m)
  })

  it('has a read-only root file system, except ClickHouse', async () => {
    for (const [name, service] of await readServices())
      expect(/^ +read_only: true$/m.test(service)).toBe(name !== 'clickhouse')
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
    const passwords = [...text.matchAll(/^([A-Z]+)_PASSWORD=(.*)$/gm)].map(([, name, value]) => [name, value])
    expect(passwords.map(([name]) => name)).toEqual(['CLICKHOUSE', 'REDIS', 'GRAFANA'])
    for (const [, password] of passwords) expect(password).toMatch(/^[0-9a-f]{48}$/)
    expect(new Set(passwords.map(([, password]) => password)).size).toBe(3)
    expect((await stat(join(folder, '.env'))).mode & 0o777).toBe(0o600)
  } finally {
    await rm(folder, { recursive: true })
  }
})
