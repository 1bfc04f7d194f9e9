import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startServices } from '../src/index.ts'
import type { ProcessSpec } from '../src/supervised-process.ts'
import { DataDirectoryBusyError, makeFolder, Supervisor } from '../src/supervisor.ts'
import { allEnd, descendantsOf } from './processes.ts'

const script = fileURLToPath(new URL('supervisor-script.ts', import.meta.url))

let folder: string
let child: ChildProcess | undefined
let supervisor: Supervisor | undefined

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-supervisor-')))
})
afterEach(async () => {
  await supervisor?.stop({ force: true })
  const left = descendantsOf(child?.pid)
  child?.kill('SIGKILL')
  await allEnd(left)
  rmSync(folder, { recursive: true, force: true })
})

/** Starts services with a supervisor in a separate process. */
async function superviseElsewhere(): Promise<ChildProcess> {
  const started = spawn(process.execPath, [script, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  child = started
  await once(started.stdout, 'data')
  return started
}

it('a supervisor leaves no process after kill -9 at any moment of its start', async () => {
  for (const afterMs of [100, 150, 200, 250, 300]) {
    const started = spawn(process.execPath, [script, folder], { stdio: 'ignore' })
    child = started
    await new Promise((resolve) => setTimeout(resolve, afterMs))
    const processes = descendantsOf(started.pid)
    started.kill('SIGKILL')
    await once(started, 'exit')
    expect(await allEnd(processes)).toBe(true)
  }
})

it('a supervisor shares its data directory with no other one, and stops a Redis that outlived an earlier run', async () => {
  const elsewhere = await superviseElsewhere()
  expect(() => new Supervisor({ dataDir: folder })).toThrow(DataDirectoryBusyError)
  const processes = descendantsOf(elsewhere.pid)
  const redis = processes.find(({ command }) => command.includes('redis-server'))
  const guard = processes.find(({ parent }) => parent === redis?.pid)
  if (redis === undefined || guard === undefined) throw new Error('there is no guarded Redis')
  process.kill(guard.pid, 'SIGSTOP')
  elsewhere.kill('SIGKILL')
  await allEnd(processes.filter((each) => each !== guard && each !== redis))
  const services = await startServices({ dataDir: folder })
  expect(await allEnd([redis])).toBe(true)
  process.kill(guard.pid, 'SIGKILL')
  await services.stop()
})

it('a supervisor starts no process while it stops, not even for a caller with a handle; its guard kills one', async () => {
  const services = await startServices({ dataDir: folder })
  const { redis, clickhouse } = services.processes
  const [guard] = descendantsOf(redis.pid)
  if (guard === undefined) throw new Error('there is no guard')
  process.kill(guard.pid, 'SIGKILL')
  expect(await redis.exited).toMatchObject({ signal: 'SIGKILL' })
  const stopped = services.stop({ force: true })
  await expect(redis.start()).rejects.toThrow('redis is not started')
  await stopped
  await expect(clickhouse.start()).rejects.toThrow('clickhouse is not started')
})

/** Starts a process that runs JavaScript. */
async function startScript(code: string, spec: Partial<ProcessSpec> = {}) {
  supervisor = new Supervisor({ dataDir: folder })
  return supervisor.start({
    role: 'api',
    name: 'script',
    command: process.execPath,
    args: ['-e', code],
    cwd: folder,
    environment: {},
    readyDeadlineMs: 5_000,
    isReady: () => Promise.resolve(true),
    ...spec,
  })
}

it('a process that exits while starting is reported with its output', async () => {
  const start = startScript('console.log("no configuration"); process.exit(3)', {
    isReady: () => Promise.resolve(false),
  })
  await expect(start).rejects.toThrow(
    /^script exited while starting \(exit code 3\)\n {4}Log file: .*script.log\n {4}no configuration$/,
  )
})

it('a process suspended by SIGSTOP exits on SIGTERM, and can be started again', async () => {
  const started = await startScript('setInterval(() => {}, 1000)')
  const first = started.pid
  started.kill('SIGSTOP')
  await started.stop({ deadlineMs: 5_000 })
  expect(await started.exited).toMatchObject({ signal: 'SIGTERM' })
  expect(started.pid).toBeUndefined()
  await started.start()
  expect(started.pid).not.toBe(first)
})

it('a folder is created with its missing parents, for its owner only, also behind a symbolic link', () => {
  mkdirSync(join(folder, 'real'), { mode: 0o755 })
  symlinkSync('real', join(folder, 'link'))
  makeFolder(join(folder, 'link', 'a', 'b'))
  for (const path of ['real/a', 'real/a/b']) expect(statSync(join(folder, path)).mode & 0o777).toBe(0o700)
})
