import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SluiceClient } from '../../src/index.ts'
import { DiskSpool, type Files } from '../../src/spool/index.ts'
import { diskFiles } from '../../src/spool/files.ts'
import { accept, FakeApi, loseAnswer, problem, type Responder } from '../support/fake-api.ts'

const soon = (check: () => unknown): Promise<unknown> => vi.waitFor(check, { timeout: 5_000, interval: 10 })

let api: FakeApi
let directory = ''
const clients: SluiceClient[] = []
beforeEach(async () => {
  api = new FakeApi()
  await api.start()
  directory = await mkdtemp(join(tmpdir(), 'split-'))
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close({ timeoutMs: 0 })
  await api.stop()
  await rm(directory, { recursive: true })
})

function start(files: Partial<Files> = {}): SluiceClient {
  const client = new SluiceClient({
    url: api.url,
    flushIntervalMs: 20,
    flushOnExit: false,
    spool: new DiskSpool({ directory }, { files: { ...diskFiles(false), ...files } }),
    onError: () => undefined,
  })
  clients.push(client)
  return client
}

/** Does not take the files of halves. */
const append: Files['append'] = (path, bytes) =>
  path.endsWith('-1.batch') || path.endsWith('-2.batch')
    ? Promise.reject(new Error('ENOSPC'))
    : diskFiles(false).append(path, bytes)

const acceptHalves =
  (answer: Responder): Responder =>
  (response, received) =>
    received.logs.length > 1 ? problem(413, 'body_too_large')(response, received) : answer(response, received)

const batchFiles = async (): Promise<string[]> =>
  (await readdir(directory, { recursive: true })).filter((name) => name.endsWith('.batch'))

test('of a request whose halves the disk does not take, the whole stays until both are acknowledged', async () => {
  api.defaultResponder = acceptHalves(accept)
  const client = start({ append })
  client.info('1')
  client.info('2')
  await client.flush()
  expect(client.stats.accepted).toBe(2)
  await soon(async () => expect(await batchFiles()).toEqual([]))
})

test('the next process splits it again if the halves were not acknowledged', async () => {
  api.defaultResponder = acceptHalves(loseAnswer)
  const client = start({ append })
  client.info('1')
  client.info('2')
  await soon(() => expect(api.received.length).toBeGreaterThanOrEqual(3))
  const keys = new Set(api.received.map(({ headers }) => headers['idempotency-key']))
  await client.close({ timeoutMs: 0 })
  expect(await batchFiles()).toHaveLength(1)
  api.defaultResponder = acceptHalves(accept)
  start()
  await soon(() => expect(new Set(api.storedMessages)).toEqual(new Set(['1', '2'])))
  expect(api.stored.size).toBe(2)
  expect([...api.stored.keys()].every((key) => keys.has(key))).toBe(true)
})
