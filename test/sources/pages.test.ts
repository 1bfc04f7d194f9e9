import { globSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8')
const pages = globSync(['docs/**/*.md', 'packages/*/README.md'], { cwd: root })
const examples = globSync('examples/*/**', { cwd: root }).filter(
  (path) => !path.includes('node_modules') && statSync(`${root}${path}`).isFile(),
)

/** The example that a file belongs to. */
const exampleOf = (path: string): string => path.split('/', 2).join('/')

it('names each example on a page, by its folder or by its files', () => {
  const text = pages.map(read).join('\n')
  const isNamed = (path: string): boolean => text.includes(path) || text.includes(`\`${exampleOf(path)}\``)
  expect(examples.filter((path) => !isNamed(path))).toEqual([])
})

it('says of each source whether it was tested', () => {
  const [table = ''] = read('docs/sources/README.md').split('\n## APIs')
  const sources = [...table.matchAll(/^\| \[.*?\]\(([\w-]+\.md)/gm)].map(([, name = '']) => name)
  const says = /^\*\*(Tested|Untested|Partly tested)\*\*/m
  expect(sources.length).toBeGreaterThan(5)
  expect(sources.filter((name) => !says.test(read(`docs/sources/${name}`)))).toEqual([])
})

it('shows the programs of the tests', () => {
  const programs = globSync('test/sources/clients/*', { cwd: root }).map(read)
  const snippets = ['elasticsearch', 'splunk-datadog'].flatMap((name) =>
    [...read(`docs/sources/${name}.md`).matchAll(/^```(?:js|python)\n(.*?)^```$/gms)].map(
      ([, code = '']) => code,
    ),
  )
  expect(snippets).toHaveLength(6)
  expect(snippets.filter((code) => !programs.some((program) => program.includes(code)))).toEqual([])
})
