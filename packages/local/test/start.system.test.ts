import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Ports } from '../src/ports.ts'
import { findTagged, stopTagged } from '../src/process-tags.ts'
import { withRegistry } from '../src/provision.ts'
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

function start(settings: Record<string, string> = {}): StartCommand {
  running = StartCommand.run(dataDir, settings)
  return running
}

/** Runs the `sluice` command. @returns its output */
function sluice(...args: string[]): string {
  const root = fileURLToPath(new URL('../../../', import.meta.url))
  return execFileSync(join(root, 'sluice'), args, {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], SLUICE_DATA_DIR: dataDir },
  })
}

const pidOf = (role: string): number | undefined =>
  findTagged(dataDir).find((each) => each.role === role)?.pid

async function noProcessIsLeft(): Promise<void> {
  await vi.waitFor(() => expect(findTagged(dataDir)).toEqual([]), 15_000)
}

test('the printed curl command sends an entry, which arrives', async () => {
  const command = await start().isReady()
  const curl = command.output.split('\n').find((line) => line.trim().startsWith('curl '))
  // Replaces curl, which may not be installed: prints its arguments, each followed by a NUL.
  const script = `curl() { printf '%s\\0' "$@"; }\n${curl ?? 'false'}`
  const args = execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' }).split('\0')
  const valuesOf = (option: string): string[] =>
    args.flatMap((arg, index) => (arg === option ? [args[index + 1] ?? ''] : []))
  const response = await fetch(args.find((arg) => arg.startsWith('http://')) ?? '', {
    method: 'POST',
    headers: valuesOf('-H').map((header): [string, string] => {
      const [name = '', value = ''] = header.split(': ')
      return [name, value]
    }),
    body: valuesOf('-d').join(''),
  })
  expect(await response.text()).toContain('"accepted"')
  await command.arrives('Hello, Sluice')
})

test('key, addresses and rows stay the same after a stop and a start', async () => {
  const first = await start().isReady()
  expect(await first.send('before')).toBe(202)
  const before = first.local
  first.child.kill('SIGINT')
  expect(await first.exitCode).toBe(0)
  expect(findTagged(dataDir)).toEqual([])

  const second = await start({ PORT: new URL(before.apiUrl).port }).isReady()
  expect(second.local).toEqual(before)
  expect(await second.send('after')).toBe(202)
  await second.arrives('after')
  expect(await second.messages()).toEqual(['after', 'before'])
})

test('a taken PORT is reported, and nothing is started', async () => {
  const server = createServer()
  const port = await new Ports().free()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const command = start({ PORT: String(port) })
  expect(await command.exitCode).toBe(1)
  expect(command.output).toContain(
    `Port ${port} is used by another program. Choose another: PORT=${port + 1}`,
  )
  expect(findTagged(dataDir)).toEqual([])
  server.close()
})

test('the settings of API and worker have an effect', async () => {
  const command = await start({ LOG_LEVEL: 'error', HOST: '0.0.0.0' }).isReady()
  expect(command.local.apiUrl).toMatch(/^http:\/\/127\.0\.0\.1:/)
  expect(await command.send('anywhere')).toBe(202)
  for (const role of ['api', 'worker'])
    expect(readFileSync(join(dataDir, 'logs', `${role}.log`), 'utf8')).not.toContain('"level":30')
})

test.each([
  ['an invalid value', { LOG_LEVEL: 'loud' }, 'invalid settings: LOG_LEVEL must be one of trace,'],
  [
    'an address of another machine',
    { HOST: '192.0.2.1' },
    'Choose an address of this machine: HOST=127.0.0.1',
  ],
  ['a setting that has no effect here', { REDIS_URL: 'redis://redis' }, 'env -u REDIS_URL npm start'],
  ['a data folder that is a file', { SLUICE_DATA_DIR: process.execPath }, 'Set SLUICE_DATA_DIR to a folder'],
  [
    'a data folder below a file',
    { SLUICE_DATA_DIR: `${process.execPath}/x` },
    'Set SLUICE_DATA_DIR to a folder',
  ],
  ...(process.platform === 'linux'
    ? [['a data folder in /proc', { SLUICE_DATA_DIR: '/proc/x' }, 'Set SLUICE_DATA_DIR to a folder'] as const]
    : []),
] as const)('%s is reported in one line with the remedy', async (_what, settings, remedy) => {
  const command = start(settings)
  expect(await command.exitCode).toBe(1)
  expect(command.output.trim().split('\n')).toEqual([expect.stringContaining(remedy)])
})

test('a deleted or disabled project is replaced, and its key is accepted', async () => {
  const first = await start().isReady()
  expect(first.local.projectId).toBe('demo')
  sluice('projects', 'delete', 'demo', '--yes')
  await withRegistry({ redisUrl: first.local.redisUrl, prefix: 'sluice' }, async ({ projects }) => {
    await projects.create('demo-2')
    await projects.setEnabled('demo-2', false)
  })
  first.child.kill('SIGINT')
  await first.exitCode

  const second = await start().isReady()
  expect(second.output).toContain('The project demo was deleted.')
  expect(second.output).toContain('./sluice projects enable demo-2')
  expect(second.local.projectId).toBe('demo-3')
  expect(await second.send('accepted')).toBe(202)
})

test('an output that others may read contains neither the key nor a password', async () => {
  const file = join(folder, 'start.log')
  const output = openSync(file, 'w', 0o644)
  const command = StartCommand.run(dataDir, {}, output)
  running = command
  closeSync(output)
  await vi.waitFor(() => expect(readFileSync(file, 'utf8')).toContain('./sluice send'), 15_000)
  const { local } = command
  const text = readFileSync(file, 'utf8')
  expect(text).not.toContain(local.apiKey)
  expect(text).not.toContain(local.clickhouse.password)
})

test.each(['a reader that has exited', 'a full disk'])('SIGTERM stops everything with %s', async (what) => {
  const full = what === 'a full disk' && process.platform === 'linux' ? openSync('/dev/full', 'w') : undefined
  const command = StartCommand.run(dataDir, {}, full)
  running = command
  if (full !== undefined) closeSync(full)
  await vi.waitFor(() => expect(command.local.apiUrl).toContain('http'), 15_000)
  command.child.stdout?.destroy()
  command.child.kill('SIGTERM')
  expect(await command.exitCode).toBe(0)
  expect(findTagged(dataDir)).toEqual([])
})

test('an interrupt ends a start that waits for a program', async () => {
  // The search for Redis asks this program for its version. It does not answer, and ignores SIGTERM.
  const script = `process.on('SIGTERM', () => {}); setTimeout(() => {}, 60_000)`
  const program = join(folder, 'redis-server')
  writeFileSync(program, `#!/bin/sh\necho $$ > '${folder}/pid'\nexec '${process.execPath}' -e "${script}"\n`)
  chmodSync(program, 0o755)
  const command = start({ PATH: `${folder}:/usr/bin:/bin` })
  await command.prints('ClickHouse')
  const interruptedAtMs = performance.now()
  command.child.kill('SIGTERM')
  expect(await command.exitCode).toBe(0)
  expect(performance.now() - interruptedAtMs).toBeLessThan(10_000)
  process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGKILL')
  await noProcessIsLeft()
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
