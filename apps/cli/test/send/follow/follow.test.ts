import { appendFile, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { run } from '../../../src/run.ts'
import { type FakeContext, fakeContext } from '../../fake-context.ts'
import { StoringApi } from './storing-api.ts'

let api: StoringApi
let folder = ''
beforeEach(async () => {
  api = new StoringApi()
  await api.start()
  folder = await mkdtemp(join(tmpdir(), 'sluice-follow-'))
})
afterEach(async () => {
  await api.stop()
  await rm(folder, { recursive: true })
})

function contextFor(): FakeContext {
  return fakeContext({
    environment: {
      SLUICE_API_URL: api.url,
      SLUICE_API_KEY: 'slk_test',
      XDG_STATE_HOME: join(folder, 'state'),
    },
  })
}

async function followUntil(
  args: readonly string[],
  isDone: () => boolean,
  context = contextFor(),
): Promise<FakeContext> {
  const running = run(['send', '--follow', ...args], context)
  const giveUpMs = Date.now() + 20_000
  while (!isDone() && Date.now() < giveUpMs) await sleep(10)
  context.interrupt()
  expect(await running).toBe(0)
  expect(isDone()).toBe(true)
  return context
}

const messages = (): string[] => api.stored.map(({ message }) => message).toSorted()

test('sends what the files have and what they get, and continues where it ended', async () => {
  const [a, b] = [join(folder, 'a.log'), join(folder, 'b.log')]
  await writeFile(a, '[INFO] a1\n')
  const first = contextFor()
  const done = followUntil([a, b], () => messages().length === 3, first)
  while (!first.written.stderr.includes('waiting for the file')) await sleep(5)
  await writeFile(b, '[WARN] b1\n')
  await sleep(300)
  await appendFile(a, '[INFO] a2\n')
  await done
  expect(first.written.stderr).toContain(`${b}: waiting for the file (ENOENT)\n`)
  expect(first.written.stdout).toContain('3 of 3 entries sent, 3 accepted, 0 rejected')
  expect(api.stored.find(({ message }) => message === 'b1')).toMatchObject({ level: 'warn', service: 'b' })

  await appendFile(a, '[INFO] a3\n')
  await followUntil([b, a], () => messages().length === 4)
  expect(messages()).toEqual(['a1', 'a2', 'a3', 'b1'])
  expect(
    (await readdir(join(folder, 'state', 'sluice', 'follow'))).every((name) => name.endsWith('.json')),
  ).toBe(true)
})

test('sends lines, and what comes after a rotation, although the clock is set back again and again', async () => {
  const log = join(folder, 'a.log')
  await writeFile(log, 'one\n')
  let timeMs = Date.now()
  const context = { ...contextFor(), nowMs: () => (timeMs -= 1_000) }
  const done = followUntil([log], () => messages().length === 2, context)
  await sleep(500)
  await rename(log, `${log}.1`)
  await writeFile(log, 'two\n')
  await done
  expect(messages()).toEqual(['one', 'two'])
})

test('keeps its state where --state says', async () => {
  const log = join(folder, 'a.log')
  const state = join(folder, 'my-state.json')
  await writeFile(log, 'one\n')
  await followUntil([log, '--state', state], () => messages().length === 1)
  await followUntil([log, '--state', join(folder, 'other.json')], () => messages().length === 2)
  await appendFile(log, 'two\n')
  await followUntil([log, '--state', state], () => messages().length === 3)
  expect(messages()).toEqual(['one', 'one', 'two'])
  expect(await readdir(folder)).toEqual(['a.log', 'my-state.json', 'other.json'])
})

describe('fails', () => {
  test.each([
    [[], 2, '--follow needs files, not stdin'],
    [['-'], 2, '--follow needs files, not stdin'],
    [['a.log', '--skip-lines', '3'], 2, '--skip-lines cannot be combined with --follow'],
    [['a.log', '--timezone', 'Mars'], 2, '--timezone must be a time zone'],
    [['.'], 1, 'it is not a file'],
  ])('with arguments that make no sense: %j', async (args, code, message) => {
    const context = contextFor()
    expect(await run(['send', '--follow', ...args], context)).toBe(code)
    expect(context.written.stderr).toContain(message)
  })

  test('with a compressed file', async () => {
    const path = join(folder, 'a.log')
    await writeFile(path, gzipSync('text'))
    const context = contextFor()
    expect(await run(['send', '--follow', path], context)).toBe(1)
    expect(context.written.stderr).toBe(`sluice: cannot follow ${path}: it is compressed (gzip)\n`)
  })

  test('with --state and without --follow', async () => {
    expect(await run(['send', 'a.log', '--state', 'x'], contextFor())).toBe(2)
  })

  test('when the API rejects the key, and the entries are sent later', async () => {
    const log = join(folder, 'a.log')
    await writeFile(log, 'one\n')
    api.isRejecting = true
    const context = contextFor()
    expect(await run(['send', '--follow', log], context)).toBe(1)
    expect(context.written.stderr).toContain('the API key is missing, malformed')
    api.isRejecting = false
    await followUntil([log], () => messages().length === 1)
  })
})
