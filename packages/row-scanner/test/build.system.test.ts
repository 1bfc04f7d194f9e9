import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

const fromHere = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const compiler = createRequire(import.meta.url).resolve('assemblyscript/bin/asc.js')

it('scanner.wasm is compiled from the current sources', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-scanner-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const compiled = join(folder, 'scanner.wasm')
  execFileSync(process.execPath, [compiler, '--config', 'asconfig.json', '--outFile', compiled], {
    cwd: fromHere('../assembly'),
  })
  // If it is not, run `npm run build:scanner`.
  expect(readFileSync(compiled)).toEqual(readFileSync(fromHere('../src/scanner.wasm')))
})
