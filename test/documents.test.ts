import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { apiSettings } from '../apps/api/src/config.ts'
import { workerSettings } from '../apps/worker/src/config.ts'

interface DocumentedSetting {
  readonly default?: string | number | boolean
  readonly description: string
}

const root = new URL('../', import.meta.url)

/** The cells of the README's table of settings, by the variable's name. */
async function readTable(): Promise<Map<string, string[]>> {
  const readme = await readFile(new URL('README.md', root), 'utf8')
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

/** The documents, with their paths from the root. */
async function readDocuments(): Promise<{ path: string; text: string }[]> {
  const pages = (await readdir(new URL('docs/', root))).filter((file) => file.endsWith('.md'))
  const paths = [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    ...pages.map((page) => `docs/${page}`),
  ]
  return Promise.all(paths.map(async (path) => ({ path, text: await readFile(new URL(path, root), 'utf8') })))
}

it('names no file that is not there', async () => {
  const missing: string[] = []
  for (const { path, text } of await readDocuments()) {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(
      ([, link = '']) => new URL(link, new URL(path, root)),
    )
    const named = [...text.matchAll(/`((?:apps|packages|test|bench|docs)\/[\w./-]+)`/g)].map(
      ([, name = '']) => new URL(name, root),
    )
    for (const file of [...links, ...named]) if (!existsSync(file)) missing.push(`${path}: ${file.pathname}`)
  }
  expect(missing).toEqual([])
})

it('names a test for each invariant of delivery', async () => {
  const text = await readFile(new URL('docs/exactly-once.md', root), 'utf8')
  const [, section = ''] = text.split('## Invariants')
  const invariants = section.split(/^\*\*(?=\d+\. )/m).slice(1)
  expect(invariants.length).toBeGreaterThanOrEqual(8)
  for (const invariant of invariants) expect(invariant).toMatch(/_Enforced by_|\*Enforced by\*/)
})
