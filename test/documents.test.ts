import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { referencePages } from '../tools/reference-pages.ts'

const root = new URL('../', import.meta.url)
const read = (path: string): Promise<string> => readFile(new URL(path, root), 'utf8')

/** The documents, with their paths from the root. */
async function readDocuments(): Promise<{ path: string; text: string }[]> {
  const pages = (await readdir(new URL('docs/', root), { recursive: true })).filter((file) =>
    file.endsWith('.md'),
  )
  const paths = [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    'SECURITY.md',
    'packages/client/README.md',
    'packages/pino-transport/README.md',
    'packages/row-scanner/README.md',
    ...pages.map((page) => `docs/${page}`),
  ]
  return Promise.all(paths.map(async (path) => ({ path, text: await read(path) })))
}

/** The anchors of a document's headings, as GitHub makes them. */
function anchorsOf(text: string): ReadonlySet<string> {
  return new Set(
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{Letter}\p{Number}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

it.each([...referencePages()])('%s is current; `npm run docs` generates it', async (path, text) => {
  expect(await read(path)).toBe(text)
})

it('names only files and headings that exist', async () => {
  const missing: string[] = []
  for (const { path, text } of await readDocuments()) {
    for (const [, link = ''] of text.matchAll(/\]\((?!https?:)([^)]+)\)/g)) {
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? new URL(path, root) : new URL(file, new URL(path, root))
      if (!existsSync(target)) missing.push(`${path}: ${link}`)
      else if (anchor !== undefined && !anchorsOf(await readFile(target, 'utf8')).has(anchor))
        missing.push(`${path}: ${link}`)
    }
    for (const [, name = ''] of text.matchAll(/`((?:apps|packages|test|bench|docs|tools)\/[\w./-]+)`/g))
      if (![root, new URL(path, root)].some((base) => existsSync(new URL(name, base))))
        missing.push(`${path}: ${name}`)
  }
  expect(missing).toEqual([])
})

it('names a test for each invariant of delivery', async () => {
  const [, section = ''] = (await read('docs/exactly-once.md')).split('## Invariants')
  const invariants = section.split(/^\*\*(?=\d+\. )/m).slice(1)
  expect(invariants.length).toBeGreaterThanOrEqual(8)
  for (const invariant of invariants) expect(invariant).toMatch(/_Enforced by_|\*Enforced by\*/)
})

it('never asks users to run a package of npm by the name of the command', async () => {
  const pages = (await readDocuments()).filter(({ text }) => /\bnpx (--yes )?sluice\b/.test(text))
  // The changelog names the former way to call the command.
  expect(pages.map(({ path }) => path).filter((path) => path !== 'CHANGELOG.md')).toEqual([])
})
