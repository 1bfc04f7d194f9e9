import { globSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8')
const pages = globSync('docs/**/*.md', { cwd: root })
const examples = globSync('examples/*/**', { cwd: root }).filter(
  (path) => !path.includes('node_modules') && statSync(`${root}${path}`).isFile(),
)

/** The examples that a page shows: a comment names the file, and the next block has its text. */
function shownExamples(page: string): { path: string; text: string }[] {
  const blocks = read(page).matchAll(/^<!-- (examples\/\S+) -->\n\n```\w*\n(.*?)^```$/gms)
  return [...blocks].map(([, path = '', text = '']) => ({ path, text }))
}

it('shows examples as they are tested', () => {
  const shown = pages.flatMap(shownExamples)
  expect(shown.length).toBeGreaterThan(5)
  expect(shown).toEqual(shown.map(({ path }) => ({ path, text: read(path) })))
})

it('shows or names each example on a page', () => {
  const text = pages.map(read).join('\n')
  expect(examples.filter((path) => !text.includes(path))).toEqual([])
})

it('has each folder of examples in the table of examples', () => {
  const table = read('examples/README.md')
  const folders = new Set(examples.map((path) => path.split('/')[1] ?? ''))
  expect([...folders].filter((folder) => !table.includes(`](${folder})`))).toEqual([])
})

it('says of each guide whether it was tested', () => {
  const guides = [...read('docs/sources/guides.md').matchAll(/\]\(([\w-]+\.md)\)/g)].map(
    ([, name = '']) => name,
  )
  const says = /^\*\*(Tested|Untested|Partly tested)\*\*/m
  expect(guides.length).toBeGreaterThan(5)
  expect(guides.filter((name) => !says.test(read(`docs/sources/${name}`)))).toEqual([])
})
