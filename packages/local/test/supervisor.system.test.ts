import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startServices } from '../src/index.ts'
import { ProcessError, type ProcessSpec } from '../src/supervised-process.ts'
import { DataDirectoryBusyError, makeFolder, Supervisor } from '../src/supervisor.ts'
import { allEnd, descendantsOf } from './processes.ts'

const script = fileURLToPath(new URL('supervisor-script.ts', import.meta.url))

let folder: string
let child: ChildProcess | undefined

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-supervisor-')))
})
afterEach(async () => {
  const left = descendantsOf(child?.pid)
  child?.kill('SIGKILL')
  await allEnd(left)
  rmSync(folder, { recursive: true, force: true })
})

/** Starts services with a supervisor in a separate process. */
async function superviseElsewhere(): Promise<ChildProcess> {
  const supervisor = spawn(process.execPath, [script, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  child = supervisor
  await once(supervisor.stdout, 'data')
  return supervisor
}

describe('a supervisor', () => {
  it('leaves no process after kill -9 at any moment of its start', async () => {
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

  it('kills a process whose guard dies', async () => {
    const services = await startServices({ dataDir: folder })
    const [guard] = descendantsOf(services.processes.redis.pid)
    if (guard === undefined) throw new Error('there is no guard')
    process.kill(guard.pid, 'SIGKILL')
    expect(await services.processes.redis.exited).toMatchObject({ signal: 'SIGKILL' })
    await services.stop()
  })

  it('stops a Redis that outlived an earlier run', async () => {
    const supervisor = await superviseElsewhere()
    const processes = descendantsOf(supervisor.pid)
    const redis = processes.find(({ command }) => command.includes('redis-server'))
    const guard = processes.find(({ parent }) => parent === redis?.pid)
    if (redis === undefined || guard === undefined) throw new Error('there is no guarded Redis')
    process.kill(guard.pid, 'SIGSTOP')
    supervisor.kill('SIGKILL')
    await allEnd(processes.filter((each) => each !== guard && each !== redis))
    const services = await startServices({ dataDir: folder })
    expect(await allEnd([redis])).toBe(true)
    process.kill(guard.pid, 'SIGKILL')
    await services.stop()
  })

  it('shares its data directory with no other one', async () => {
    await superviseElsewhere()
    await expect(Supervisor.open({ dataDir: folder })).rejects.toThrow(DataDirectoryBusyError)
  })

  it('starts no process while it stops, not even for a caller with a handle', async () => {
    const services = await startServices({ dataDir: folder })
    const stopped = services.stop({ force: true })
    await services.processes.redis.exited
    await expect(services.processes.redis.start()).rejects.toThrow('redis is not started')
    await stopped
    await expect(services.processes.clickhouse.start()).rejects.toThrow('clickhouse is not started')
    await expect(services.supervisor.start(specOf(''))).rejects.toThrow('script is not started')
  })
})

/** A process that runs JavaScript. */
function specOf(code: string, spec: Partial<ProcessSpec> = {}): ProcessSpec {
  return {
    role: 'api',
    name: 'script',
    command: process.execPath,
    args: ['-e', code],
    cwd: folder,
    environment: {},
    readyDeadlineMs: 5_000,
    isReady: () => Promise.resolve(true),
    ...spec,
  }
}

describe('a process', () => {
  const forever = 'setInterval(() => {}, 1000);'
  const never = { isReady: () => Promise.resolve(false) }
  let supervisor: Supervisor

  beforeEach(async () => {
    supervisor = await Supervisor.open({ dataDir: folder })
  })
  afterEach(() => supervisor.stop({ force: true }))

  it('that exits while starting is reported with its output', async () => {
    const start = supervisor.start(specOf('console.log("no configuration"); process.exit(3)', never))
    const error = await start.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ProcessError)
    expect(error).toMatchObject({
      message: 'script exited while starting (exit code 3)',
      log: ['no configuration'],
    })
  })

  it('whose program is missing is reported', async () => {
    const start = supervisor.start(specOf('', { ...never, command: join(folder, 'missing') }))
    await expect(start).rejects.toMatchObject({ log: [expect.stringContaining('missing')] })
  })

  it('that is not ready in time is stopped', async () => {
    const start = supervisor.start(specOf(forever, { ...never, readyDeadlineMs: 200 }))
    await expect(start).rejects.toThrow('script was not ready after 0.2 s')
    expect(supervisor.processes[0]?.running).toBe(false)
  })

  it('has only the environment of its specification', async () => {
    const print =
      'console.log(Object.keys(process.env).filter((name) => !/^(_|PWD)/.test(name)).join()); process.exit()'
    const start = supervisor.start(specOf(print, { ...never, environment: { GREETING: 'hello' } }))
    await expect(start).rejects.toMatchObject({ log: ['GREETING'] })
  })

  it('that ignores SIGTERM is killed after the deadline', async () => {
    const deaf = `process.on('SIGTERM', () => {}); console.log('deaf'); ${forever}`
    const stubborn = await supervisor.start(
      specOf(deaf, {
        isReady: () =>
          Promise.resolve(readFileSync(join(folder, 'logs', 'script.log'), 'utf8').includes('deaf')),
      }),
    )
    await stubborn.stop({ deadlineMs: 100 })
    expect(await stubborn.exited).toMatchObject({ signal: 'SIGKILL' })
  })

  it('suspended by SIGSTOP exits on SIGTERM, and can be started again', async () => {
    const started = await supervisor.start(specOf(forever))
    const first = started.pid
    started.kill('SIGSTOP')
    await started.stop({ deadlineMs: 5_000 })
    expect(await started.exited).toMatchObject({ signal: 'SIGTERM' })
    expect(started.pid).toBeUndefined()
    await started.start()
    expect(started.pid).not.toBe(first)
  })
})

it('a folder is created with its missing parents, for its owner only, also behind a symbolic link', () => {
  mkdirSync(join(folder, 'real'), { mode: 0o755 })
  symlinkSync('real', join(folder, 'link'))
  makeFolder(join(folder, 'link', 'a', 'b'))
  for (const path of ['real/a', 'real/a/b']) expect(statSync(join(folder, path)).mode & 0o777).toBe(0o700)
})
