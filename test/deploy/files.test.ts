import { commonSettings } from '@sluice/runtime'
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { apiSettings } from '../../apps/api/src/config.ts'
import { workerSettings } from '../../apps/worker/src/config.ts'
import { nodeOptions } from '../../packages/local/src/apps.ts'
import { settingsOfChart } from '../../tools/reference-pages.ts'

const deploy = new URL('../../deploy/', import.meta.url)
const read = (path: string): Promise<string> => readFile(new URL(path, deploy), 'utf8')

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly definitions?: Readonly<Record<string, Schema>>
  readonly $ref?: string
}

/** The paths of all properties, down to those without further ones. */
function declared(schema: Schema, root: Schema, path: string): string[] {
  const target = schema.$ref === undefined ? schema : root.definitions?.[schema.$ref.split('/').at(-1) ?? '']
  const properties = Object.entries(target?.properties ?? {})
  if (properties.length === 0 || path === '.settings') return [path]
  return properties.flatMap(([name, each]) => declared(each, root, `${path}.${name}`))
}

function given(value: unknown, path: string): string[] {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  const entries = isObject && path !== '.settings' ? Object.entries(value) : []
  return entries.length === 0 ? [path] : entries.flatMap(([name, each]) => given(each, `${path}.${name}`))
}

describe('the Helm chart', () => {
  it('has a default for each value that its schema permits', async () => {
    const schema = JSON.parse(await read('helm/values.schema.json')) as Schema
    const values: unknown = parse(await read('helm/values.yaml'))
    // Optional parts of `resources`; `global` is for charts that contain this one.
    const optional = /^\.global$|\.(limits\.cpu|(limits|requests)\.ephemeral-storage)$/
    const paths = declared(schema, schema, '').filter((path) => !optional.test(path))
    expect(given(values, '').toSorted()).toEqual(paths.toSorted())
  })

  it('determines only settings that exist', () => {
    const settings = new Set(Object.keys({ ...apiSettings, ...workerSettings }))
    expect([...settingsOfChart].filter((name) => !settings.has(name))).toEqual([])
  })

  it('has the version of the project, and the default shutdown deadline of the processes', async () => {
    const { appVersion } = parse(await read('helm/Chart.yaml')) as { appVersion: string }
    const { version } = JSON.parse(await read('../package.json')) as { version: string }
    expect(appVersion).toBe(version)
    const { settings } = parse(await read('helm/values.yaml')) as { settings: Record<string, number> }
    expect(settings).toEqual({ SHUTDOWN_DEADLINE_MS: commonSettings.SHUTDOWN_DEADLINE_MS.default })
  })
})

/** The directives of a unit. A repeated one has its last value. */
async function directives(service: string): Promise<ReadonlyMap<string, string>> {
  const text = await read(`systemd/${service}`)
  return new Map([...text.matchAll(/^([A-Za-z]+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]))
}

/** The sandbox: the directives from the first one about file systems to the section [Install]. */
async function sandboxOf(service: string): Promise<string> {
  const [, sandbox = ''] = /\n(ProtectSystem=[^[]*)/.exec(await read(`systemd/${service}`)) ?? []
  return sandbox.trim()
}

describe('the systemd units', () => {
  const services = readdirSync(new URL('systemd/', deploy)).filter((file) => file.endsWith('.service'))
  const longRunning = ['sluice-api@.service', 'sluice-worker@.service']

  it('are these three', () => {
    expect(services.toSorted()).toEqual([...longRunning, 'sluice-migrate.service'].toSorted())
  })

  it('have the same sandbox, and users of their own', async () => {
    const sandboxes = await Promise.all(services.map(sandboxOf))
    expect(sandboxes[0]).toContain('NoNewPrivileges=yes')
    expect(new Set(sandboxes).size).toBe(1)
    const users = await Promise.all(services.map(async (each) => (await directives(each)).get('User')))
    expect(new Set(users).size).toBe(services.length)
    expect(users).not.toContain('root')
    for (const service of services) expect((await directives(service)).get('DynamicUser')).toBe('yes')
  })

  it.each(services)('%s has limits of memory, tasks and descriptors', async (service) => {
    const unit = await directives(service)
    expect(unit.get('MemoryMax')).toMatch(/^\d+[MG]$/)
    expect(unit.get('TasksMax')).toMatch(/^\d+$/)
    expect(unit.get('LimitNOFILE')).toMatch(/^\d+$/)
  })

  it.each(longRunning)(
    '%s is not killed before its shutdown deadline, and restarts a limited number of times',
    async (service) => {
      const unit = await directives(service)
      const deadlineS = commonSettings.SHUTDOWN_DEADLINE_MS.default / 1_000
      expect(Number(unit.get('TimeoutStopSec'))).toBeGreaterThanOrEqual(deadlineS + 5)
      expect(unit.get('Restart')).toBe('always')
      // The limit is reached: the interval is longer than the starts take, at half a second for each.
      const starts = Number(unit.get('StartLimitBurst'))
      expect(Number(unit.get('StartLimitIntervalSec'))).toBeGreaterThan(
        starts * (Number(unit.get('RestartSec')) + 0.5),
      )
    },
  )

  it.each(['api', 'worker'] as const)('the %s has the options of Node that npm start uses', async (role) => {
    const command = ['/usr/bin/node', ...nodeOptions[role], `apps/${role}/src/main.ts`].join(' ')
    expect((await directives(`sluice-${role}@.service`)).get('ExecStart')).toBe(command)
  })

  it('the API does not read the file with the access to ClickHouse', async () => {
    expect(await read('systemd/sluice-api@.service')).not.toContain('clickhouse.env')
    expect(await read('systemd/sluice.env.example')).not.toContain('CLICKHOUSE')
  })

  it('the examples of their settings have only settings that exist', async () => {
    const settings = new Set(Object.keys({ ...apiSettings, ...workerSettings }))
    for (const file of ['sluice.env.example', 'clickhouse.env.example']) {
      const names = [...(await read(`systemd/${file}`)).matchAll(/^([A-Z_]+)=/gm)].map(
        ([, name = '']) => name,
      )
      expect(names.length).toBeGreaterThan(2)
      expect(names.filter((name) => !settings.has(name))).toEqual([])
    }
  })
})
