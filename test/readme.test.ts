import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { apiSettings } from '../apps/api/src/config.ts'
import { workerSettings } from '../apps/worker/src/config.ts'

interface DocumentedSetting {
  readonly default?: string | number | boolean
  readonly description: string
}

/** The cells of the README's table of settings, by the variable's name. */
async function readTable(): Promise<Map<string, string[]>> {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
  const [, section = ''] = readme.split('<!-- settings:')
  const [table = ''] = section.split('\n## ')
  const rows = [...table.matchAll(/^\| `([A-Z_]+)` *\|(.*)\|$/gm)]
  return new Map(rows.map(([, name = '', cells = '']) => [name, cells.split('|').map((cell) => cell.trim())]))
}

it('documents every setting with its default, its readers and its description, and no other', async () => {
  const settings: Record<string, DocumentedSetting> = { ...apiSettings, ...workerSettings }
  const documented = Object.entries(settings).map(([name, setting]) => {
    const value = setting.default === undefined || setting.default === '' ? '' : `\`${setting.default}\``
    const readers = [name in apiSettings ? 'API' : '', name in workerSettings ? 'worker' : ''].filter(Boolean)
    return [name, [value, readers.join(', '), setting.description]] as const
  })
  expect(await readTable()).toEqual(new Map(documented))
})
