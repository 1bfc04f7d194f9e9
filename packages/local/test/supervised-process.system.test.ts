import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lastLines } from '../src/log-file.ts'
import { ProcessError, type ProcessSpec, SupervisedProcess } from '../src/supervised-process.ts'

let folder: string
let started: SupervisedProcess | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-process-'))
})
afterEach(async () => {
  await started?.stop({ signal: 'SIGKILL' })
  rmSync(folder, { recursive: true })
})

/** A process that runs JavaScript. */
function script(code: string, spec: Partial<ProcessSpec> = {}): SupervisedProcess {
  const full: ProcessSpec = {
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
  started = new SupervisedProcess(full, join(folder, 'script.log'))
  return started
}

const forever = 'setInterval(() => {}, 1000);'
const deaf = `process.on('SIGTERM', () => {}); console.log('deaf'); ${forever}`

test('a process that exits while starting is reported with its output', async () => {
  const ends = script('console.log("no configuration"); process.exit(3)', {
    isReady: () => Promise.resolve(false),
  })
  const error = await ends.start().catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(ProcessError)
  expect(error).toMatchObject({
    message: 'script exited while starting (exit code 3)',
    log: ['no configuration'],
  })
})

test('a missing program is reported', async () => {
  const missing = script('', { command: join(folder, 'missing'), isReady: () => Promise.resolve(false) })
  await expect(missing.start()).rejects.toThrow(/ENOENT/)
})

test('a process that is not ready in time is stopped', async () => {
  const slow = script(forever, { readyDeadlineMs: 200, isReady: () => Promise.resolve(false) })
  await expect(slow.start()).rejects.toThrow('script was not ready after 0.2 s')
  expect(slow.running).toBe(false)
})

test('a process has only the environment of its specification', async () => {
  const curious = script(
    'console.log(Object.entries(process.env).filter(([name]) => !name.startsWith("__")).flat().join()); process.exit()',
    { environment: { GREETING: 'hello' }, isReady: () => Promise.resolve(false) },
  )
  await expect(curious.start()).rejects.toMatchObject({ log: ['GREETING,hello'] })
})

test('a process that ignores SIGTERM is killed after the deadline', async () => {
  const stubborn = script(deaf, {
    isReady: () => Promise.resolve(lastLines(join(folder, 'script.log'), 1).includes('deaf')),
  })
  await stubborn.start()
  await stubborn.stop({ deadlineMs: 100 })
  expect(await stubborn.exited).toMatchObject({ signal: 'SIGKILL' })
})

test('a process suspended by SIGSTOP exits on SIGTERM', async () => {
  const stopped = script(forever)
  await stopped.start()
  stopped.kill('SIGSTOP')
  await stopped.stop({ deadlineMs: 5_000 })
  expect(await stopped.exited).toMatchObject({ signal: 'SIGTERM' })
})

test('a process that exited can be started again', async () => {
  const again = script(forever)
  await again.start()
  const first = again.pid
  again.kill('SIGKILL')
  expect(await again.exited).toMatchObject({ signal: 'SIGKILL' })
  expect(again.pid).toBeUndefined()
  await again.start()
  expect(again.pid).not.toBe(first)
})
