import { execFile, spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const program = fileURLToPath(new URL('../src/main.ts', import.meta.url))

/** Prints the URL of every loaded module to stderr. */
const hook = `
  import { registerHooks } from 'node:module'
  registerHooks({ load: (url, context, next) => { console.error(url); return next(url, context) } })`

test('the help starts fast: it loads no module of the packages', async () => {
  const args = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`, program, 'help']
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args)
  expect(stdout).toContain('Usage: ./sluice')
  const modules = stderr.split('\n')
  expect(modules.filter((url) => url.includes('/apps/cli/src/'))).not.toEqual([])
  expect(modules.filter((url) => url.includes('/packages/'))).toEqual([])
  expect(modules.filter((url) => url.includes('/node_modules/') && !url.includes('/commander/'))).toEqual([])
})

test.runIf(process.platform === 'linux')('an output that cannot be written is one line on stderr', () => {
  const full = openSync('/dev/full', 'w')
  const { status, stderr } = spawnSync(process.execPath, [program, 'help'], {
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
  })
  closeSync(full)
  expect(status).toBe(1)
  expect(stderr).toMatch(/^sluice: the output cannot be written \(ENOSPC.*\)\n$/)
})
