import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startServices } from '../src/index.ts'
import { findTagged, stopTagged } from '../src/process-tags.ts'
import { DataDirectoryBusyError, Supervisor } from '../src/supervisor.ts'

const script = fileURLToPath(new URL('supervisor-script.ts', import.meta.url))

let dataDir: string
let child: ChildProcess | undefined

beforeEach(() => {
  dataDir = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-supervisor-')))
})
afterEach(async () => {
  child?.kill('SIGKILL')
  await stopTagged(dataDir)
  rmSync(dataDir, { recursive: true, force: true })
})

/** Starts services with a supervisor in a separate process. */
async function superviseElsewhere(
  ...args: readonly string[]
): Promise<{ dataDir: string; watchdogPid: number; child: ChildProcess }> {
  const started = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  child = started
  for await (const line of createInterface({ input: started.stdout })) {
    return { ...(JSON.parse(line) as { dataDir: string; watchdogPid: number }), child: started }
  }
  throw new Error('the supervisor exited')
}

const rolesOn = (folder: string): string[] =>
  findTagged(folder)
    .map(({ role }) => role)
    .toSorted()

test('kill -9 of the supervisor leaves no process and no temporary data', async () => {
  const there = await superviseElsewhere()
  expect(rolesOn(there.dataDir)).toEqual(['clickhouse', 'redis', 'watchdog'])
  there.child.kill('SIGKILL')
  await vi.waitFor(() => expect(rolesOn(there.dataDir)).toEqual([]), 10_000)
  expect(existsSync(there.dataDir)).toBe(false)
})

test('kill -9 of the supervisor at any moment of its start leaves no process', async () => {
  for (const afterMs of [150, 200, 250, 300]) {
    const started = spawn(process.execPath, [script, dataDir], { stdio: 'ignore' })
    child = started
    await new Promise((resolve) => setTimeout(resolve, afterMs))
    started.kill('SIGKILL')
    await once(started, 'exit')
    await vi.waitFor(() => expect(rolesOn(dataDir)).toEqual([]), 10_000)
  }
})

test('after kill -9 of the supervisor and its watchdog, the next supervisor stops the remaining processes', async () => {
  const there = await superviseElsewhere(dataDir)
  const exited = once(there.child, 'exit')
  process.kill(there.watchdogPid, 'SIGKILL')
  there.child.kill('SIGKILL')
  await exited
  await vi.waitFor(() => expect(rolesOn(dataDir)).toEqual(['clickhouse', 'redis']), 5_000)
  const supervisor = await Supervisor.open({ dataDir })
  expect(supervisor.leftovers).toBe(2)
  expect(rolesOn(dataDir)).toEqual(['watchdog'])
  await supervisor.stop()
  expect(rolesOn(dataDir)).toEqual([])
})

test('a watchdog that dies is replaced', async () => {
  const supervisor = await Supervisor.open({ dataDir })
  const first = supervisor.watchdogPid
  if (first === undefined) throw new Error('there is no watchdog')
  process.kill(first, 'SIGKILL')
  await vi.waitFor(() => expect(supervisor.watchdogPid).not.toBe(first), 5_000)
  await supervisor.stop()
  expect(rolesOn(dataDir)).toEqual([])
})

test('a data directory has one supervisor at a time', async () => {
  await superviseElsewhere(dataDir)
  await expect(Supervisor.open({ dataDir })).rejects.toThrow(DataDirectoryBusyError)
  expect(rolesOn(dataDir)).toEqual(['clickhouse', 'redis', 'watchdog'])
})

test('a caller with the handle of a process cannot start it again while the supervisor is stopping', async () => {
  const services = await startServices({ dataDir })
  const stopped = services.stop({ force: true })
  await services.processes.redis.exited
  await expect(services.processes.redis.start()).rejects.toThrow('redis is not started')
  await stopped
  await expect(services.processes.clickhouse.start()).rejects.toThrow('clickhouse is not started')
  expect(rolesOn(dataDir)).toEqual([])
})

test('a stopped supervisor starts no process', async () => {
  const supervisor = await Supervisor.open()
  await supervisor.stop()
  const start = supervisor.start({
    role: 'api',
    name: 'late',
    command: process.execPath,
    args: [],
    cwd: dataDir,
    environment: {},
    readyDeadlineMs: 1_000,
    isReady: () => Promise.resolve(true),
  })
  await expect(start).rejects.toThrow('late is not started')
})
