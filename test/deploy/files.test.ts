import { commonSettings } from '@sluice/runtime'
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { apiSettings } from '../../apps/api/src/config.ts'
import { querySettings } from '../../apps/query/src/config.ts'
import { workerSettings } from '../../apps/worker/src/config.ts'
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
    const settings = new Set(Object.keys({ ...apiSettings, ...querySettings, ...workerSettings }))
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
