import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Ports } from '../src/ports.ts'
import { withRegistry } from '../src/provision.ts'
import { allEnd, descendantsOf } from './processes.ts'
import { StartCommand } from './start-command.ts'

let folder: string
let dataDir: string
let running: StartCommand | undefined

beforeEach(() => {
  folder = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'sluice start & <')))
  dataDir = join(folder, 'data')
})
afterEach(async () => {
  const left = descendantsOf(running?.child.pid)
  running?.child.kill('SIGKILL')
  await allEnd(left)
  fs.rmSync(folder, { recursive: true, force: true })
})

function start(settings: Record<string, string> = {}): StartCommand {
  running = new StartCommand(dataDir, { settings })
  return running
}

function pidOf(command: StartCommand, program: string): number {
  const found = descendantsOf(command.child.pid).find(({ command: line }) => line.includes(program))
  if (found === undefined) throw new Error(`${program} is not running`)
  return found.pid
}

test('the printed curl command sends an entry, which arrives', async () => {
  const command = await start().isReady()
  const curl = command.output.split('\n').find((line) => line.trim().startsWith('Send '))
  // Replaces curl, which may not be installed: prints its arguments, each followed by a NUL.
  const script = `Send() { "$@"; }\ncurl() { printf '%s\\0' "$@"; }\n${curl ?? 'false'}`
  const args = execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' }).split('\0')
  const valuesOf = (option: string): string[] => args.filter((_, index) => args[index - 1] === option)
  const response = await fetch(args.find((arg) => arg.startsWith('http://')) ?? '', {
    method: 'POST',
    headers: Object.fromEntries(valuesOf('-H').map((header) => header.split(': '))) as Record<string, string>,
    body: valuesOf('-d').join(''),
  })
  expect(await response.text()).toContain('"accepted"')
  await command.arrives('Hello, Sluice')
})

test('key, addresses and rows stay the same after a stop and a start', async () => {
  const first = await start().isReady()
  expect(await first.send('before')).toBe(202)
  const before = first.local
  const processes = descendantsOf(first.child.pid)
  first.child.kill('SIGINT')
  expect(await first.exitCode).toBe(0)
  await allEnd(processes)

  const second = await start({ PORT: new URL(before.apiUrl).port }).isReady()
  expect(second.local).toEqual(before)
  expect(await second.send('after')).toBe(202)
  await second.arrives('after')
  expect(await second.messages()).toEqual(['after', 'before'])
})

test('the settings of API and worker have an effect', async () => {
  const command = await start({ LOG_LEVEL: 'error', HOST: '0.0.0.0' }).isReady()
  expect(command.local.apiUrl).toMatch(/^http:\/\/127\.0\.0\.1:/)
  expect(await command.send('anywhere')).toBe(202)
  for (const role of ['api', 'worker'])
    expect(fs.readFileSync(join(dataDir, 'logs', `${role}.log`), 'utf8')).not.toContain('"level":30')
})

const FOLDER = 'Set SLUICE_DATA_DIR to a folder'
test.each<[settings: Record<string, string>, remedy: string]>([
  [{ LOG_LEVEL: 'loud' }, 'invalid settings: LOG_LEVEL must be one of trace,'],
  [{ HOST: '192.0.2.1' }, 'Choose others: HOST=127.0.0.1 PORT='],
  [{ REDIS_URL: 'redis://redis' }, 'env -u REDIS_URL npm start'],
  [{ SLUICE_DATA_DIR: process.execPath }, FOLDER],
  [{ SLUICE_DATA_DIR: `${process.execPath}/x` }, FOLDER],
  [{ SLUICE_DATA_DIR: '/proc/x' }, FOLDER],
])('the fault %j is reported in one line with the remedy', async (settings, remedy) => {
  const command = start(settings)
  expect(await command.exitCode).toBe(1)
  expect(command.output.trim().split('\n')).toEqual([expect.stringContaining(remedy)])
})

test('a deleted or disabled project is replaced, and its key is accepted', async () => {
  const first = await start().isReady()
  expect(first.local.projectId).toBe('demo')
  await withRegistry({ redisUrl: first.local.redisUrl, prefix: 'sluice' }, async ({ projects }) => {
    await projects.delete('demo')
    await projects.create('demo-2')
    await projects.update('demo-2', { enabled: false })
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
  const output = fs.openSync(file, 'w', 0o644)
  const command = new StartCommand(dataDir, { output })
  running = command
  fs.closeSync(output)
  await vi.waitFor(() => expect(fs.readFileSync(file, 'utf8')).toContain('./sluice send'))
  const { local } = command
  const text = fs.readFileSync(file, 'utf8')
  expect(text).not.toContain(local.apiKey)
  expect(text).not.toContain(local.clickhouse.password)
})

test.each(['a reader that has exited', 'a full disk'])('SIGTERM stops everything with %s', async (what) => {
  const full =
    what === 'a full disk' && process.platform === 'linux' ? fs.openSync('/dev/full', 'w') : undefined
  const command = new StartCommand(dataDir, { output: full })
  running = command
  if (full !== undefined) fs.closeSync(full)
  await vi.waitFor(() => expect(command.local.apiUrl).toContain('http'))
  const processes = descendantsOf(command.child.pid)
  command.child.stdout?.destroy()
  command.child.kill('SIGTERM')
  expect(await command.exitCode).toBe(0)
  await allEnd(processes)
})

test('an interrupt ends a start that waits for a program, and its program', async () => {
  // A Redis that never replies, and ignores SIGTERM.
  const script = `process.on('SIGTERM', () => {}); setTimeout(() => {}, 60_000)`
  const program = join(folder, 'redis-server')
  fs.writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' -e "${script}"\n`)
  fs.chmodSync(program, 0o755)
  const command = start({ PATH: `${folder}:/usr/bin:/bin` })
  await command.prints('Starting')
  const processes = descendantsOf(command.child.pid)
  command.child.kill('SIGTERM')
  expect(await command.exitCode).toBe(0)
  await allEnd(processes)
})

test('a second start on the same data reports the address of the first one', async () => {
  const first = await start().isReady()
  const second = new StartCommand(dataDir)
  expect(await second.exitCode).toBe(1)
  expect(second.output).toContain(`Sluice is already running on ${dataDir} (API: ${first.local.apiUrl})`)
  expect(await first.send('still here')).toBe(202)
})

test('a stop is orderly even if ClickHouse does not respond', async () => {
  const command = await start().isReady()
  const processes = descendantsOf(command.child.pid)
  process.kill(pidOf(command, 'clickhouse-server'), 'SIGSTOP')
  // The worker waits for ClickHouse until its deadline.
  expect(await command.send('waits')).toBe(202)
  command.child.kill('SIGINT')
  command.child.kill('SIGTERM')
  expect(await command.exitCode).toBe(0)
  await allEnd(processes)
})

test('kill -9 leaves no process, and the next start delivers the accepted entries', async () => {
  const command = await start().isReady()
  // So that nothing is stored before the kill.
  process.kill(pidOf(command, 'apps/worker'), 'SIGSTOP')
  expect(await command.send('survives')).toBe(202)
  const processes = descendantsOf(command.child.pid)
  command.child.kill('SIGKILL')
  await allEnd(processes)
  const next = await start().isReady()
  expect(next.output).toContain('Entries of the last run that are still in the queue: 1.')
  await next.arrives('survives')
})

test('a start without the data of Redis says so, and the key goes on working', async () => {
  const first = await start().isReady()
  expect(await first.send('before')).toBe(202)
  await first.arrives('before')
  const { apiKey, projectId } = first.local
  first.child.kill('SIGTERM')
  await first.exitCode
  fs.rmSync(join(dataDir, 'redis'), { recursive: true })

  const second = await start().isReady()
  expect(second.output.match(/^Redis has lost its data: .*$/gm)).toEqual([
    'Redis has lost its data: entries that were not yet stored are lost. The project demo and its key are restored from local.json.',
  ])
  expect(second.local).toMatchObject({ apiKey, projectId })
  expect(await second.send('after')).toBe(202)
  await second.arrives('after')
  for (const opsUrl of Object.values(second.local.opsUrls))
    expect(await (await fetch(`${opsUrl}/readyz`)).json()).toMatchObject({ status: 'ok' })
})

/** A small disk of its own for the data. Undefined if this machine permits no mounts. */
function mountSmallDisk(): (() => void) | undefined {
  fs.mkdirSync(dataDir)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256m', 'tmpfs', dataDir], { stdio: 'ignore' })
    return () => execFileSync('umount', ['--lazy', dataDir])
  } catch {
    return undefined
  }
}

/** Fills the disk up to these bytes. */
function fillDisk(leftBytes: number): void {
  const { bavail, bsize } = fs.statfsSync(dataDir)
  fs.writeFileSync(join(dataDir, 'filler'), Buffer.alloc(bavail * bsize - leftBytes))
}

test('a full disk is reported while it runs, in /readyz and at the next start, and nothing is lost', async (context) => {
  const unmount = mountSmallDisk()
  if (unmount === undefined) context.skip('no mounts')
  try {
    const first = await start().isReady()
    fillDisk(800_000)
    // ClickHouse may free some of it at the same time.
    await first.prints(`The disk of ${dataDir} is full (`)
    expect(await first.send('waits')).toBe(202)
    await vi.waitFor(async () => {
      const { reasons } = (await (await fetch(`${first.local.opsUrls.worker}/readyz`)).json()) as {
        reasons: string[]
      }
      expect(reasons[0]).toContain('the disk of ClickHouse is full (NOT_ENOUGH_SPACE)')
    }, 60_000)
    first.child.kill('SIGTERM')
    await first.exitCode

    const second = start()
    expect(await second.exitCode).toBe(1)
    expect(second.output.trim().split('\n')).toEqual([expect.stringContaining('is full (')])

    fs.rmSync(join(dataDir, 'filler'))
    await (await start().isReady()).arrives('waits')
  } finally {
    const left = descendantsOf(running?.child.pid)
    running?.child.kill('SIGKILL')
    await allEnd(left)
    unmount?.()
  }
})

test('kill -9 of the parent npm stops everything', async () => {
  running = await new StartCommand(dataDir, { npmFolder: folder }).isReady()
  const processes = descendantsOf(running.child.pid)
  expect(processes.length).toBeGreaterThan(8)
  running.child.kill('SIGKILL')
  await allEnd(processes)
})

test.each(['apps/api', 'apps/worker', 'clickhouse-server', 'redis-server'])(
  'kill -9 of %s stops everything, and its log file is reported',
  async (program) => {
    const command = await start().isReady()
    const processes = descendantsOf(command.child.pid)
    process.kill(pidOf(command, program), 'SIGKILL')
    expect(await command.exitCode).toBe(1)
    expect(command.output).toContain('exited (SIGKILL)')
    expect(command.output).toContain(join(dataDir, 'logs'))
    await allEnd(processes)
  },
)

test.runIf(process.platform === 'linux')(
  'several processes share one port, which no other start gets; kill -9 of one stops everything',
  async () => {
    const args = ['--api', '2', '--workers', '2']
    const settings = { PORT: String(await new Ports().free()) }
    running = await new StartCommand(dataDir, { args, settings }).isReady()
    expect(await running.send('shared')).toBe(202)
    await running.arrives('shared')

    const other = new StartCommand(join(folder, 'other'), { args, settings })
    expect(await other.exitCode).toBe(1)
    expect(other.output).toContain(`PORT=${settings.PORT} (EADDRINUSE). Choose others: HOST=127.0.0.1`)

    const processes = descendantsOf(running.child.pid)
    const copies = processes.filter(({ command }) => command.endsWith(' --copy'))
    expect(copies).toHaveLength(4)
    process.kill(copies[0]?.pid ?? 0, 'SIGKILL')
    expect(await running.exitCode).toBe(1)
    expect(running.output).toMatch(/✗ (api|worker) exited \(exit code 1\)/)
    await allEnd(processes)
  },
)

test.each([
  [['--api', '0'], 'API_PROCESSES'],
  // What npm passes of `npm start --api 2`.
  [['2'], 'Usage: npm start -- [--api N] [--workers N]'],
])('npm start -- %j is rejected', async (args, text) => {
  const command = new StartCommand(dataDir, { args })
  expect(await command.exitCode).toBe(1)
  expect(command.output).toContain(text)
})
