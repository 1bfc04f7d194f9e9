import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { browserOf, pagerOf } from '../src/programs.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-programs-'))
})
afterEach(() => rm(folder, { recursive: true }))

/** Creates a program that writes its arguments, its `LESS` and its input to the file `output`. */
async function program(name: string): Promise<NodeJS.ProcessEnv> {
  const output = join(folder, 'output')
  await writeFile(
    join(folder, name),
    `#!/bin/sh\n{ echo "$LESS" "$@"; cat; } > ${output}.new\nmv ${output}.new ${output}\n`,
  )
  await chmod(join(folder, name), 0o755)
  return { PATH: `${folder}:${process.env['PATH']}` }
}
const output = () => readFile(join(folder, 'output'), 'utf8')

const screen = { isTTY: true, columns: 10, rows: 5 }

test('text that is longer than the screen is shown with less, with colours, from its end', async () => {
  const show = pagerOf(screen, await program('less'))
  const text = '1\n2\n3\n4\n5\n'
  expect(show(text)).toBe(true)
  expect(await output()).toBe(`-R -R +G\n${text}`)
})

test.each([
  ['1\n2\n3\n4\n', screen, false],
  ['\u001B[31m1234567890\u001B[39m\n2\n3\n4\n', screen, false],
  ['1234567890X\n2\n3\n4\n', screen, true],
  ['1\n2\n3\n4\n5\n', { ...screen, isTTY: false }, false],
])('whether %j is shown in a pager', async (text, stream, isShown) => {
  const env = await program('mine')
  expect(pagerOf(stream, { ...env, PAGER: 'mine -x' })(text)).toBe(isShown)
  expect((await output().catch(() => '')).startsWith('-R -x\n')).toBe(isShown)
})

test('without the pager, the text is not shown in it', () => {
  expect(pagerOf(screen, { PATH: folder, PAGER: 'nothing' })('1\n2\n3\n4\n5\n')).toBe(false)
})

test('a page is opened in the browser of the desktop, if there is one', async () => {
  const env = await program('xdg-open')
  vi.stubEnv('PATH', env['PATH'])
  browserOf('linux', {})('http://not-opened/')
  browserOf('aix', { DISPLAY: ':0' })('http://not-opened/')
  browserOf('linux', { DISPLAY: ':0' })('http://localhost/open?token=x')
  await vi.waitFor(async () => expect(await output()).toBe(' http://localhost/open?token=x\n'))
})
