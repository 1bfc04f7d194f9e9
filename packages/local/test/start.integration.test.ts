import { execFileSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Ports } from '../src/ports.ts'
import { findTagged, stopTagged } from '../src/process-tags.ts'
import { stopStages } from '../src/supervised-process.ts'
import { StartCommand } from './start-command.ts'

let folder: string
let dataDir: string
let running: StartCommand | undefined

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-start-')))
  dataDir = join(folder, 'data')
})
afterEach(async () => {
  running?.child.kill('SIGKILL')
  await stopTagged(dataDir)
  rmSync(folder, { recursive: true, force: true })
})

function start(port?: number): StartCommand {
  running = StartCommand.run(dataDir, port)
  return running
}

const pidOf = (role: string): number | undefined =>
  findTagged(dataDir).find((each) => each.role === role)?.pid

async function noProcessIsLeft(): Promise<void> {
  await vi.waitFor(() => expect(findTagged(dataDir)).toEqual([]), 15_000)
}

test('the printed curl command sends an entry, which arrives', async () => {
  const command = await start().isReady()
  const curl = command.output.split('\n').find((line) => line.trim().startsWith('curl '))
  expect(execFileSync('/bin/sh', ['-c', curl ?? 'false'], { encoding: 'utf8' })).toContain('"accepted"')
  await command.arrives('Hello, Sluice')
})

test('key, addresses and rows stay the same after a stop and a start', async () => {
  const first = await start().isReady()
  expect(await first.send('before')).toBe(202)
  const before = first.local
  first.child.kill('SIGINT')
  expect(await first.exitCode).toBe(0)
  expect(findTagged(dataDir)).toEqual([])

  const second = await start(Number(new URL(before.apiUrl).port)).isReady()
  expect(second.local).toEqual(before)
  expect(await second.send('after')).toBe(202)
  await second.arrives('after')
  expect(await second.messages()).toEqual(['after', 'before'])
})

test('a taken PORT is reported, and nothing is started', async () => {
  const server = createServer()
  const port = await new Ports().free()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const command = start(port)
  expect(await command.exitCode).toBe(1)
  expect(command.output).toContain(
    `Port ${port} is used by another program. Choose another: PORT=${port + 1}`,
  )
  expect(findTagged(dataDir)).toEqual([])
  server.close()
})

test('a second start on the same data reports the address of the first one', async () => {
  const first = await start().isReady()
  const second = StartCommand.run(dataDir)
  expect(await second.exitCode).toBe(1)
  expect(second.output).toContain(`Sluice is already running on ${dataDir} (API: ${first.local.apiUrl})`)
  expect(await first.send('still here')).toBe(202)
})

test('an interrupt during the start leaves no process', async () => {
  const command = start()
  await command.prints('ClickHouse')
  command.child.kill('SIGINT')
  expect(await command.exitCode).toBe(0)
  expect(findTagged(dataDir)).toEqual([])
})

test('a second interrupt kills all processes', async () => {
  const command = await start().isReady()
  const clickhouse = pidOf('clickhouse')
  if (clickhouse === undefined) throw new Error('ClickHouse is not running')
  // The worker waits for a ClickHouse that does not answer, so an orderly stop lasts until its deadline.
  process.kill(clickhouse, 'SIGSTOP')
  expect(await command.send('waits')).toBe(202)
  await new Promise((resolve) => setTimeout(resolve, 500))
  command.child.kill('SIGINT')
  await command.prints('Stopping')
  await new Promise((resolve) => setTimeout(resolve, 300))
  const forcedAtMs = performance.now()
  command.child.kill('SIGINT')
  expect(await command.exitCode).toBe(1)
  expect(performance.now() - forcedAtMs).toBeLessThan(1_500)
  expect(findTagged(dataDir)).toEqual([])
})

test('an orderly stop takes less than 10 s even if ClickHouse does not answer', async () => {
  const command = await start().isReady()
  process.kill(pidOf('clickhouse') ?? 0, 'SIGSTOP')
  expect(await command.send('waits')).toBe(202)
  await new Promise((resolve) => setTimeout(resolve, 500))
  const interruptedAtMs = performance.now()
  command.child.kill('SIGINT')
  expect(await command.exitCode).toBe(0)
  expect(performance.now() - interruptedAtMs).toBeLessThan(10_000)
  expect(findTagged(dataDir)).toEqual([])
})

test('kill -9 leaves no process, and the next start delivers the accepted entries', async () => {
  const command = await start().isReady()
  expect(await command.send('survives')).toBe(202)
  command.child.kill('SIGKILL')
  await noProcessIsLeft()
  await (await start().isReady()).arrives('survives')
})

test('kill -9 of the parent npm stops everything', async () => {
  running = await StartCommand.runByNpm(dataDir, folder).isReady()
  expect(findTagged(dataDir)).not.toEqual([])
  running.child.kill('SIGKILL')
  await noProcessIsLeft()
})

test('every process that dies is restarted', async () => {
  const command = await start().isReady()
  for (const role of stopStages.flat()) {
    const pid = pidOf(role)
    if (pid === undefined) throw new Error(`${role} is not running`)
    process.kill(pid, 'SIGKILL')
    await command.prints(`${role} exited (SIGKILL); restarting it`)
    await command.prints(`${role} is running again`)
  }
  // The API may still be reconnecting to Redis.
  await vi.waitFor(async () => expect(await command.send('after all that')).toBe(202), 5_000)
  await command.arrives('after all that')
})

test('a process that keeps dying stops everything, and its log file is reported', async () => {
  const command = await start().isReady()
  const killing = setInterval(() => {
    const pid = pidOf('api')
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
  }, 50)
  expect(await command.exitCode).toBe(1)
  clearInterval(killing)
  expect(command.output).toContain('api exited 5 times within a minute (SIGKILL)')
  expect(command.output).toContain(join(dataDir, 'logs', 'api.log'))
  expect(findTagged(dataDir)).toEqual([])
})
