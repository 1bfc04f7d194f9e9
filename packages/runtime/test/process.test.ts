import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'

const program = fileURLToPath(new URL('support/process-main.ts', import.meta.url))
const DEADLINE_MS = 1_000
/** How long an exit may take on a busy machine. After this time, the process is killed, and has no exit code. */
const MARGIN_MS = 8_000

let running: ChildProcess | undefined

afterEach(() => {
  running?.kill('SIGKILL')
})

interface Options {
  readonly modes?: readonly string[]
  readonly deadlineMs?: number | string
  /** A file for the log. Default: a pipe. */
  readonly log?: string
}

function spawnProcess({ modes = [], deadlineMs = DEADLINE_MS, log }: Options): ChildProcess {
  const file = log === undefined ? undefined : openSync(log, 'w')
  const child = spawn(process.execPath, [program, ...modes], {
    env: { DEADLINE_MS: String(deadlineMs) },
    stdio: ['pipe', file ?? 'pipe', 'pipe'],
  })
  if (file !== undefined) closeSync(file)
  running = child
  return child
}

async function start(options: Options = {}): Promise<ChildProcess> {
  const child = spawnProcess(options)
  if (child.stderr !== null) await once(child.stderr, 'data')
  return child
}

/** @returns the exit code; null if the process did not exit in time */
async function exitOf(child: ChildProcess): Promise<unknown> {
  const timer = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS + MARGIN_MS)
  const [code] = (await once(child, 'exit')) as unknown[]
  clearTimeout(timer)
  return code
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

/** Two signals at the same time would be one. */
async function stopTwice(child: ChildProcess): Promise<void> {
  let log = ''
  child.stdout?.on('data', (data) => (log += String(data)))
  child.kill('SIGTERM')
  await expect.poll(() => log, { timeout: MARGIN_MS }).toContain('"msg":"stopping"')
  child.kill('SIGTERM')
}

describe('SIGTERM', () => {
  it('stops a process, and its last lines and the number of its repeated lines are logged', async () => {
    const child = await start({ modes: ['repeats'] })
    child.kill('SIGTERM')
    const { code, stdout } = await outputOf(child)
    expect(code).toBe(0)
    expect(stdout).toContain('"i":19,"repeated":15,"msg":"not connected"')
    expect(stdout).toContain('"msg":"stopped"')
  })

  it('stops a process after the reader of its log has exited', async () => {
    const child = await start()
    child.stdout?.destroy()
    child.kill('SIGTERM')
    expect(await exitOf(child)).toBe(0)
  })

  it('stops a process whose log has a reader that does not read', async () => {
    const child = await start({ modes: ['writes-much'], deadlineMs: 600_000 })
    child.kill('SIGTERM')
    expect(await exitOf(child)).toBe(0)
  })

  it.runIf(process.platform === 'linux')('stops a process whose log is on a full disk', async () => {
    const child = await start({ log: '/dev/full' })
    child.kill('SIGTERM')
    expect(await exitOf(child)).toBe(0)
  })

  it('stops a process although a thread of the pool is blocked', async () => {
    const child = await start({ modes: ['blocked-thread'] })
    child.kill('SIGTERM')
    expect(await exitOf(child)).toBe(0)
  })
})

describe('the deadline', () => {
  it.each(['reads', 'has exited'])(
    'ends a process that does not stop, if the reader of its log %s',
    async (reader) => {
      const child = await start({ modes: ['never-stops', 'blocked-thread'] })
      if (reader === 'has exited') child.stdout?.destroy()
      const startedAtMs = performance.now()
      child.kill('SIGTERM')
      expect(await exitOf(child)).toBe(1)
      expect(performance.now() - startedAtMs).toBeGreaterThan(DEADLINE_MS / 2)
    },
  )
})

it('a promise that rejects without a handler ends a process with code 1, and its error is logged', async () => {
  const { code, stdout } = await outputOf(spawnProcess({ modes: ['rejects'] }))
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({ level: 60, err: { message: 'no progress' } })
})

describe('a second SIGTERM', () => {
  it('ends a process at once', async () => {
    const child = await start({ modes: ['never-stops', 'blocked-thread'], deadlineMs: 600_000 })
    await stopTwice(child)
    expect(await exitOf(child)).toBe(1)
  })

  it('ends a process, and the number of its repeated lines is logged', async () => {
    const child = await start({ modes: ['never-stops', 'repeats'], deadlineMs: 600_000 })
    await stopTwice(child)
    const { code, stdout } = await outputOf(child)
    expect(code).toBe(1)
    expect(stdout).toContain('"repeated":15')
  })
})

describe('invalid settings', () => {
  it.each([
    ['before the start', { deadlineMs: 'soon' }, 'invalid settings: DEADLINE_MS must be integer'],
    ['during the start', { modes: ['invalid'] }, 'invalid settings: TEST is invalid'],
  ])('end the process %s with one line that names them', async (_when, options, message) => {
    const { code, stdout, stderr } = await outputOf(spawnProcess(options))
    expect(code).toBe(1)
    expect(stdout.trim().split('\n')).toHaveLength(1)
    expect(JSON.parse(stdout)).toMatchObject({ level: 60, name: 'test', msg: message })
    expect(stdout + stderr).not.toMatch(/\bat .*:\d+/)
  })
})
