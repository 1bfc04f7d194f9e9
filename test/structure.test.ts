import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The product's source files, as paths from the root. */
function sources(): string[] {
  return ['apps', 'packages'].flatMap((parent) =>
    readdirSync(join(root, parent)).flatMap((name) => {
      const folder = join(root, parent, name, 'src')
      return readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.tsx?$/.test(file))
        .map((file) => relative(root, join(folder, file)))
    }),
  )
}

/**
 * The unit that a file belongs to: its folder within `src`. A file directly in `src` is a unit of its own, since entry files import
 * every folder, and every folder may import a leaf such as `problems.ts`.
 */
function unitOf(file: string): string {
  return dirname(file).endsWith('/src') ? file : dirname(file)
}

/** The units that each unit imports. Another package is its index file. */
function unitImports(files: readonly string[]): Map<string, Set<string>> {
  const imports = new Map<string, Set<string>>()
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8')
    const from = unitOf(file)
    const targets = imports.get(from) ?? new Set()
    imports.set(from, targets)
    // Static imports and re-exports. A dynamic import may point back: it runs after the modules are loaded.
    for (const [, name = ''] of text.matchAll(/^(?:import|export)\b[^'"]*?from '([^']+)'/gm)) {
      const target = name.startsWith('.')
        ? unitOf(relative(root, resolve(join(root, dirname(file)), name)))
        : name.startsWith('@sluice/')
          ? `packages/${name.slice('@sluice/'.length)}/src/index.ts`
          : undefined
      if (target !== undefined && target !== from) targets.add(target)
    }
  }
  return imports
}

/** A path of imports that leads back to its start, if there is one. */
function findCycle(imports: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const done = new Set<string>()
  const visit = (unit: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(unit)) return [...path.slice(path.indexOf(unit)), unit]
    if (done.has(unit)) return undefined
    for (const target of imports.get(unit) ?? []) {
      const cycle = visit(target, [...path, unit])
      if (cycle !== undefined) return cycle
    }
    done.add(unit)
    return undefined
  }
  for (const unit of imports.keys()) {
    const cycle = visit(unit, [])
    if (cycle !== undefined) return cycle
  }
  return undefined
}

it('finds a cycle', () => {
  const imports = new Map([
    ['a', new Set(['b'])],
    ['b', new Set(['c', 'd'])],
    ['d', new Set(['a'])],
  ])
  expect(findCycle(imports)).toEqual(['a', 'b', 'd', 'a'])
})

it('has no import cycle between folders, files or packages', () => {
  const files = sources()
  expect(files.length).toBeGreaterThan(100)
  expect(findCycle(unitImports(files))).toBeUndefined()
})

/**
 * The most lines of source that a package may have, blank lines and comments included. A change that adds a concept names what it
 * replaces. Raising a budget is a decision: its reason goes next to the number.
 */
const budgets: Readonly<Record<string, number>> = {
  // With 64 sockets that accept: 1,000 clients that reconnect under load wait about 1 s instead of 4 to 23.
  'apps/api': 4_960,
  // With the language of queries, a pager, local times, `open` and `demo`.
  'apps/cli': 3_750,
  // Two pages, with a list and charts that no library has in this size. Styles come on top.
  'apps/explorer': 4_290,
  // The seven operations, the tail, sessions, the pipeline for operators, and the files of the explorer.
  'apps/query': 2_690,
  // With the search for rejected rows, and batches of their own for projects that have some.
  'apps/worker': 2_370,
  // What apps/api had for itself before apps/query needed it, with the connections to Redis of both.
  'packages/access': 660,
  // With the reads of users, inserts of blocks, and the settings that a profile must not have, where the server knows them.
  'packages/clickhouse': 1_905,
  'packages/client': 3_025,
  // With `--api` and `--workers`, and the process for readers.
  'packages/local': 1_230,
  // With several processes in one container, what each reports, and the retries that operators ask for.
  'packages/ops': 1_140,
  'packages/pino-transport': 640,
  // With the identity of the registry, and the sessions of readers.
  'packages/projects': 985,
  // A parser, SQL, and the same decisions in memory, exact for numbers of any size. Words are looked for from their rarest letter on.
  'packages/query-language': 1_045,
  // With what is complete: its time, its records, and chunks and rows that come too late.
  'packages/queue': 2_310,
  // With the tables that the scanner has in its memory.
  'packages/records': 535,
  // With what it says about the records of all protocols.
  'packages/row-scanner': 820,
  // With rows in blocks, which are also read as text: for repairs, dead letters and lookups. With the thread that packs large ones: the
  // event loop of the API takes 15 % more entries.
  'packages/rows': 760,
  // With the claim of a port that several sockets share.
  'packages/runtime': 1_870,
  'packages/schema': 150,
  'packages/traces': 240,
}

it('keeps each package within its budget of lines', () => {
  const lines: Record<string, number> = {}
  for (const file of sources()) {
    const name = file.split('/').slice(0, 2).join('/')
    lines[name] = (lines[name] ?? 0) + readFileSync(join(root, file), 'utf8').split('\n').length - 1
  }
  expect(Object.keys(lines).toSorted()).toEqual(Object.keys(budgets).toSorted())
  const over = Object.entries(lines).filter(([name, count]) => count > (budgets[name] ?? 0))
  expect(over.map(([name, count]) => `${name}: ${count} of ${budgets[name]}`)).toEqual([])
})
