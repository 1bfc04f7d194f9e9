import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = new URL('../', import.meta.url)

/** Phrases that readers stumbled over, and the terms to use. The glossary is in CONTRIBUTING.md. */
const phrases: readonly (readonly [phrase: RegExp, use: string])[] = [
  [/\bwritten? down\b/i, 'persisted, recorded'],
  [/\bset(s|ting)? aside\b/i, 'dead-letter'],
  [/\blet(s|ting)? go of\b/i, 'evict, release, drop'],
  [/\bunder way\b/i, 'in flight, running'],
  [/\bon (its|their) way\b/i, 'in flight'],
  [/\b(nobody|whoever|everybody)\b/i, 'the name of the actor'],
  [/\bfor ever\b/i, 'forever, permanently'],
  [/\ball the same\b/i, 'still, anyway'],
  [/\bof which\b/i, 'two sentences'],
  [/\bbeside\b/i, 'next to, in addition to'],
  [/\b(that|which|what) (is|are|was|were) none\b/i, 'is not a …'],
  [/\b(hand(s|ed|ing)?) back\b/i, 'requeue, return'],
  [/\btr(y|ies|ied) again\b/i, 'retry'],
  [/\bmend(s|ed|ing)?\b/i, 'fix'],
  [/\bstands? still\b/i, 'stall'],
  [/\bparted by\b/i, 'separated'],
  [/\ba passing reason\b/i, 'transient'],
  [/\bso (many|much|often)\b/i, 'a number, or "this many"'],
  [/\brefus(e|es|al|als|ing)\b/i, 'reject'],
]

const CHECKED = /\.(ts|mjs|md|yml|yaml|json|sh)$|Dockerfile$|^\.ci\//
/** Migrations never change; lock files and this list are not prose. */
const EXCLUDED = /^(pnpm-lock\.yaml|test\/language\.test\.ts)$/
/** Folders that are not in the repository; see .gitignore. */
const UNTRACKED: ReadonlySet<string> = new Set(['.data', '.git', 'coverage', 'node_modules'])

it('uses plain English and one word per concept', () => {
  const files = globSync(['**/*', '.*', '.*/**/*'], {
    cwd: fileURLToPath(root),
    exclude: (name) => UNTRACKED.has(basename(name)),
  }).filter((file) => CHECKED.test(file) && !EXCLUDED.test(file))
  expect(files.length).toBeGreaterThan(300)
  const found: string[] = []
  for (const file of files) {
    const lines = readFileSync(new URL(file, root), 'utf8').split('\n')
    for (const [index, line] of lines.entries()) {
      for (const [phrase, use] of phrases) {
        const [match] = phrase.exec(line) ?? []
        if (match !== undefined) found.push(`${file}:${index + 1}: "${match}": use ${use}`)
      }
    }
  }
  expect(found).toEqual([])
})
