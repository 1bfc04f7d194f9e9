import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it } from 'vitest'

const program = fileURLToPath(new URL('support/process-main.ts', import.meta.url))
const DEADLINE_MS = 1_000

let running: ChildProcess | undefined

afterEach(() => {
  running?.kill('SIGKILL')
})

interface Options {
  readonly modes?: readonly string[]
  readonly deadlineMs?: number | string
  /** A file for the log. Default: a pipe. */
  readonly log?: string
  readonly isReadable?: boolean
}

function spawnProcess({ modes = [], deadlineMs = DEADLINE_MS, log }: Options): ChildProcess {
  const file = log === undefined ? undefined : openSync(log, 'w')
  running = spawn(process.execPath, [program, ...modes], {
    env: { DEADLINE_MS: String(deadlineMs) },
    stdio: ['pipe', file ?? 'pipe', 'pipe'],
  })
  if (file !== undefined) closeSync(file)
  return running
}

async function start(options: Options = {}): Promise<ChildProcess> {
  const child = spawnProcess(options)
  if (child.stderr !== null) await once(child.stderr, 'data')
  if (options.isReadable === false) child.stdout?.destroy()
  return child
}

/** @returns the complete output */
async function outputOf(child: ChildProcess): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  }
  const [code] = (await once(child, 'close')) as unknown[]
  return { code, ...output }
}

it.runIf(process.platform === 'linux').each<[what: string, options: Options, code: number]>([
  ['after the reader of its log has exited', { isReadable: false }, 0],
  ['whose log has a reader that does not read', { modes: ['writes-much'], deadlineMs: 600_000 }, 0],
  ['whose log is on a full disk', { log: '/dev/full' }, 0],
  ['although a thread of the pool is blocked', { modes: ['blocked-thread'] }, 0],
  ['that does not stop, at its deadline', { modes: ['never-stops', 'blocked-thread'] }, 1],
  ['that never stops, without a reader', { modes: ['never-stops', 'blocked-thread'], isReadable: false }, 1],
])('SIGTERM ends a process %s', async (_what, options, code) => {
  const child = await start(options)
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([code, null])
})

it('SIGTERM stops a process, and its last lines and the number of its repeated lines are logged', async () => {
  const child = await start({ modes: ['repeats'] })
  child.kill('SIGTERM')
  const { code, stdout } = await outputOf(child)
  expect(code).toBe(0)
  expect(stdout).toContain('"i":19,"repeated":15,"msg":"not connected"')
  expect(stdout).toContain('"msg":"stopped"')
})

it('a second SIGTERM ends a process at once, and the number of its repeated lines is logged', async () => {
  const modes = ['never-stops', 'blocked-thread', 'repeats']
  const child = await start({ modes, deadlineMs: 600_000 })
  const output = outputOf(child)
  let log = ''
  child.stdout?.on('data', (text: string) => (log += text))
  child.kill('SIGTERM')
  // Two signals at the same time would be one.
  await expect.poll(() => log).toContain('"msg":"stopping"')
  child.kill('SIGTERM')
  const { code, stdout } = await output
  expect(code).toBe(1)
  expect(stdout).toContain('"repeated":15')
})

it.each([
  ['a promise that rejects without a handler', { modes: ['rejects'] }, { err: { message: 'no progress' } }],
  ['invalid settings', { deadlineMs: 'soon' }, { msg: 'invalid settings: DEADLINE_MS must be integer' }],
  ['invalid settings of a part', { modes: ['invalid'] }, { msg: 'invalid settings: TEST is invalid' }],
])('%s ends a process with code 1 and one line', async (_what, options, line) => {
  const { code, stdout } = await outputOf(spawnProcess(options))
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({ level: 60, name: 'test', ...line })
})
