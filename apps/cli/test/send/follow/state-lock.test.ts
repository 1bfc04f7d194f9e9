import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { takeLock } from '../../../src/send/follow/state-lock.ts'

let folder = ''
let path = ''
const children: ChildProcess[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-lock-'))
  path = join(folder, 'state.json.lock')
})
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  await rm(folder, { recursive: true })
})

const module = new URL('../../../src/send/follow/state-lock.ts', import.meta.url).href
/** Takes the lock of each line that it reads, and prints 1 if it has got it. */
const program = `
  import { createInterface } from 'node:readline'
  import { takeLock } from '${module}'
  for await (const path of createInterface(process.stdin)) console.log((await takeLock(path)) === undefined ? 1 : 0)
`

async function answerOf({ stdout }: ChildProcess): Promise<number> {
  if (stdout === null) throw new Error('there is no output')
  const [bytes] = (await once(stdout, 'data')) as [Buffer]
  return Number(bytes.toString())
}

test.each([
  ['there is none', undefined],
  ['a process that was killed left it behind', '999999999 5'],
])('of several processes at once, one has the lock: %s', { timeout: 60_000 }, async (_name, left) => {
  for (let index = 0; index < 4; index += 1)
    children.push(
      spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] }),
    )
  const owners: number[] = []
  for (let round = 0; round < 20; round += 1) {
    const lock = `${path}.${round}`
    if (left !== undefined) await writeFile(lock, left)
    const answers = children.map(answerOf)
    for (const { stdin } of children) stdin?.write(`${lock}\n`)
    owners.push((await Promise.all(answers)).reduce((sum, answer) => sum + answer, 0))
  }
  expect(owners).toEqual(owners.map(() => 1))
  // Nothing else is left.
  expect(await readdir(folder)).toHaveLength(20)
})

test('a lock is created with its contents, and a running process keeps it', async () => {
  expect(await takeLock(path)).toBeUndefined()
  expect(await readFile(path, 'utf8')).toMatch(new RegExp(`^${process.pid} `))
  await writeFile(path, String(process.ppid))
  expect(await takeLock(path)).toBe(process.ppid)
  expect(await readFile(path, 'utf8')).toBe(String(process.ppid))
})
