import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { Server } from 'node:net'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type ClientOptions, SluiceClient, type SluiceError } from '../../src/index.ts'
import { DiskSpool, type Files } from '../../src/spool/index.ts'
import { encodeAttempt, encodeEntries } from '../../src/spool/batch-file.ts'
import { deferred } from '../../src/deferred.ts'
import { diskFiles } from '../../src/spool/files.ts'
import { accept, FakeApi, loseAnswer, problem } from '../support/fake-api.ts'
import { heapBytes } from '../support/heap-bytes.ts'

const disk = diskFiles(false)
const soon = (check: () => unknown): Promise<unknown> => vi.waitFor(check, { timeout: 5_000, interval: 10 })
const ignore = (): void => undefined
const never = (): Promise<never> => new Promise(() => undefined)
const full = async (): Promise<never> => {
  throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
}

let api: FakeApi
let directory = ''
const clients: SluiceClient[] = []
const unhandled: unknown[] = []
const onUnhandled = (error: unknown): unknown => unhandled.push(error)
beforeEach(async () => {
  api = new FakeApi()
  await api.start()
  directory = await mkdtemp(join(tmpdir(), 'failing-disk-'))
  process.on('unhandledRejection', onUnhandled)
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close({ timeoutMs: 0 })
  await api.stop()
  await rm(directory, { recursive: true })
  process.off('unhandledRejection', onUnhandled)
  unhandled.length = 0
})

function start(
  options: Partial<ClientOptions> = {},
  files: Partial<Files> = {},
  path = directory,
  wallMs = Date.now,
  intervalMs = 60_000,
) {
  const spool = new DiskSpool({ directory: path }, { files: { ...disk, ...files }, wallMs, intervalMs })
  const errors: SluiceError[] = []
  const dropped: { messages: string[]; reason: string }[] = []
  const client = new SluiceClient({
    url: api.url,
    flushIntervalMs: 20,
    flushOnExit: false,
    spool,
    onError: (error) => errors.push(error),
    onDropped: (entries, reason) =>
      dropped.push({
        messages: entries.map(({ json }) => (JSON.parse(json) as { message: string }).message),
        reason,
      }),
    ...options,
  })
  clients.push(client)
  return { client, spool, errors, dropped }
}

const log = (client: SluiceClient, first: number, last: number): void => {
  for (let i = first; i <= last; i += 1) client.info(String(i))
}

async function batchFiles(): Promise<string[]> {
  const names = await readdir(directory, { recursive: true })
  return names.filter((name) => name.endsWith('.batch')).map((name) => join(directory, name))
}

/** Leaves the file of a closed client, with entries that were never sent. */
async function leave(entries: number): Promise<string> {
  const first = start({ flushIntervalMs: 60_000 })
  log(first.client, 1, entries)
  await first.spool.written()
  await first.client.close({ remaining: 'give-up' })
  return (await batchFiles())[0] ?? ''
}

test('a spool that cannot be opened is reported without an unhandled rejection, although nothing waits for it', async () => {
  const file = join(directory, 'file')
  await writeFile(file, '')
  const { client, errors } = start({}, {}, join(file, 'spool'))
  await soon(() => expect(errors).toMatchObject([{ kind: 'spool' }]))
  await sleep(10)
  expect(unhandled).toEqual([])
  log(client, 1, 1)
  expect(await client.close()).toMatchObject({ accepted: 1 })
})

test('a spool that could not be opened is retried, and keeps entries when it works', async () => {
  const path = join(directory, 'spool')
  await writeFile(path, '')
  api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '60' })
  const { client, errors } = start({ batchEntriesMax: 1 }, {}, path, Date.now, 20)
  log(client, 1, 1)
  await sleep(100)
  expect(errors).toMatchObject([{ message: expect.stringContaining('cannot be opened') as string }])
  await unlink(path)
  await soon(async () => expect(await readdir(path)).toHaveLength(1))
  log(client, 2, 2)
  await soon(async () => expect(await batchFiles()).toHaveLength(1))
  expect(await client.close({ timeoutMs: 0 })).toMatchObject({ pending: 1, dropped: 1 })
})

test('what was logged before a spool could be opened is written then', async () => {
  const path = join(directory, 'spool')
  await writeFile(path, '')
  const spool = new DiskSpool({ directory: path }, { intervalMs: 20 })
  await spool.open({ onRecovered: ignore, onError: ignore })
  const record = spool.create('key')
  record?.add('{}', 2)
  await sleep(50)
  expect(record?.isWritten).toBe(false)
  await unlink(path)
  await soon(async () => expect(record?.isWritten).toBe(true))
  await spool.close()
})

test('a spool whose folder cannot get a lock leaves no folders behind', async () => {
  const listen = vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server) {
    process.nextTick(() => this.emit('error', new Error('not supported')))
    return this
  })
  const path = join(directory, 'spool')
  const spool = new DiskSpool({ directory: path }, { intervalMs: 5 })
  await spool.open({ onRecovered: ignore, onError: ignore })
  await soon(async () => expect(listen.mock.calls.length).toBeGreaterThan(3))
  await spool.close()
  listen.mockRestore()
  expect(await readdir(path)).toEqual([])
})

describe('a batch that was sent needs no memory', () => {
  test.each<[string, string, Partial<Files>]>([
    ['if the folder could not be created', 'file/spool', {}],
    ['if its file cannot be removed', 'spool', { append: async () => undefined, remove: full }],
  ])('%s', async (_name, path, files) => {
    await writeFile(join(directory, 'file'), '')
    const spool = new DiskSpool({ directory: join(directory, path) }, { files: { ...disk, ...files } })
    await spool.open({ onRecovered: ignore, onError: ignore })
    const useRecords = async (count: number): Promise<number> => {
      for (let i = 0; i < count; i += 1) {
        const record = spool.create('key')
        record?.add('{}', 2)
        await record?.remove().catch(ignore)
      }
      return heapBytes()
    }
    const before = await useRecords(2_000)
    // 10,000 records would have about 5 MB.
    expect((await useRecords(10_000)) - before).toBeLessThan(1_000_000)
    await spool.close()
  })
})

describe('a folder that cannot be read does not stop the adoption of others', () => {
  test('and is reported once', async () => {
    const path = await leave(2)
    // Its name is that of a folder, before and after the other one.
    for (const name of ['00000000.left', 'ffffffff.left']) await writeFile(join(directory, name), '')
    const { client, errors } = start()
    await soon(() => expect(client.stats.accepted).toBe(2))
    expect(path).not.toBe('')
    expect(errors).toMatchObject([{ kind: 'spool', message: expect.stringContaining('adopt') as string }])
  })

  test('and folders with other names are not touched', async () => {
    const path = await leave(1)
    const other = join(directory, 'backup.left')
    await mkdir(other)
    await rename(path, join(other, path.slice(path.lastIndexOf('/') + 1)))
    const { client } = start()
    await sleep(100)
    expect(client.stats.accepted).toBe(0)
    expect(await readdir(other)).toHaveLength(1)
  })
})

describe('a disk that becomes full', () => {
  test('does not lose what another process left: it is sent without a mark, and its file stays until then', async () => {
    await leave(3)
    const seen: string[][] = []
    const look = async (): Promise<unknown> => seen.push(await batchFiles())
    api.defaultResponder = (response, received) => void look().then(() => accept(response, received))
    const { client, dropped } = start({}, { append: full })
    await soon(() => expect(client.stats.accepted).toBe(3))
    expect(seen).toMatchObject([[expect.stringContaining('.batch')]])
    expect(dropped).toEqual([])
    expect(client.stats).toMatchObject({ queuedEntries: 0, queuedBytes: 0, spooledEntries: 0 })
    await soon(async () => expect(await batchFiles()).toEqual([]))
  })

  test('never removes a file with complete entries: another process sends it', async () => {
    await leave(3)
    api.defaultResponder = loseAnswer
    const { client } = start({}, { append: full })
    await soon(() => expect(client.stats.failedAttempts).toBeGreaterThan(0))
    expect(await client.close({ timeoutMs: 0 })).toMatchObject({ pending: 3, dropped: 0 })
    api.defaultResponder = accept
    start()
    await soon(() => expect(api.storedMessages).toEqual(['1', '2', '3']))
  })

  test('while a batch is being written does not lose the batch', async () => {
    const { promise: gate, resolve: release } = deferred<void>()
    const { client, dropped } = start(
      { batchEntriesMax: 10, requestsInFlightMax: 1, queueEntriesMax: 20, overflow: 'drop-newest' },
      { append: () => gate.then(full) },
    )
    log(client, 1, 21)
    await sleep(50)
    log(client, 22, 22)
    release()
    expect(await client.flush()).toMatchObject({ accepted: 20 })
    expect(dropped.flatMap(({ messages }) => messages)).toEqual(['21', '22'])
    expect(client.stats).toMatchObject({ accepted: 20, dropped: 2, queuedEntries: 0, queuedBytes: 0 })
  })

  test('is not asked again for each entry', async () => {
    let appends = 0
    const append = (): Promise<never> => {
      appends += 1
      return full()
    }
    const { client, spool } = start({ flushIntervalMs: 60_000 }, { append })
    for (let i = 0; i < 20; i += 1) {
      log(client, i, i)
      await spool.written()
    }
    expect(appends).toBe(1)
    expect(await client.flush()).toMatchObject({ accepted: 20 })
  })

  test('gets the time of the first attempt with the mark that it takes later', async () => {
    let isFull = false
    let nowMs = 1_000
    const append = (path: string, bytes: Uint8Array): Promise<void> =>
      isFull ? full() : disk.append(path, bytes)
    api.defaultResponder = loseAnswer
    const { client, spool } = start({ flushIntervalMs: 200 }, { append }, directory, () => nowMs)
    log(client, 1, 1)
    await spool.written()
    isFull = true
    await soon(() => expect(client.stats.failedAttempts).toBe(1))
    isFull = false
    nowMs = 9_000
    await soon(() => expect(client.stats.failedAttempts).toBe(2))
    expect(await client.close({ timeoutMs: 0 })).toMatchObject({ pending: 1 })
    const [path = ''] = await batchFiles()
    expect(await readFile(path, 'utf8')).toMatch(/\nattempt 1000 1 .*\n$/)
  })

  test('is not said to have kept what it did not take', async () => {
    const { client, dropped } = start({ flushIntervalMs: 60_000 }, { append: full })
    log(client, 1, 3)
    expect(await client.close({ remaining: 'give-up' })).toMatchObject({ pending: 0, dropped: 3 })
    expect(client.stats).toMatchObject({ kept: 0, dropped: 3 })
    expect(dropped).toMatchObject([{ messages: ['1', '2', '3'], reason: 'closed' }])
  })

  test('leaves what was written of a batch, which the next process sends', async () => {
    let isFull = false
    const append = async (path: string, bytes: Buffer): Promise<void> => {
      await disk.append(path, isFull ? bytes.subarray(0, 20) : bytes)
      if (isFull) await full()
    }
    const { client, spool } = start({ flushIntervalMs: 60_000 }, { append })
    log(client, 1, 1)
    await spool.written()
    isFull = true
    log(client, 2, 2)
    await spool.written()
    const [path = ''] = await batchFiles()
    expect(await readFile(path, 'utf8')).toMatch(/^entries 1 .*\n.*"message":"1".*\n$/)
    await client.close({ remaining: 'give-up' })
    start()
    await soon(() => expect(api.storedMessages).toEqual(['1']))
  })

  test('takes the rest of a batch when it has space again', async () => {
    let isFull = true
    const append = (path: string, bytes: Buffer): Promise<void> =>
      isFull ? full() : disk.append(path, bytes)
    api.defaultResponder = loseAnswer
    const { client, spool } = start({ flushIntervalMs: 200 }, { append })
    log(client, 1, 1)
    await spool.written()
    isFull = false
    log(client, 2, 2)
    await soon(() => expect(client.stats.failedAttempts).toBeGreaterThan(0))
    expect(await client.close({ timeoutMs: 0 })).toMatchObject({ pending: 2 })
    const [path = ''] = await batchFiles()
    expect(await readFile(path, 'utf8')).toMatch(/^entries 2 .*\n.*\n.*\nattempt .*\n$/)
  })

  test('and does not even take the end of a remnant away keeps the complete parts', async () => {
    let isFull = false
    const append = async (path: string, bytes: Buffer): Promise<void> => {
      await disk.append(path, isFull ? bytes.subarray(0, 20) : bytes)
      if (isFull) await full()
    }
    const truncate = (path: string, bytes: number): Promise<void> =>
      isFull ? full() : disk.truncate(path, bytes)
    const { client, spool } = start({ flushIntervalMs: 200 }, { append, truncate })
    log(client, 1, 1)
    await spool.written()
    isFull = true
    log(client, 2, 2)
    await spool.written()
    isFull = false
    api.defaultResponder = loseAnswer
    await soon(() => expect(client.stats.failedAttempts).toBeGreaterThan(0))
    await client.close({ timeoutMs: 0 })
    api.defaultResponder = accept
    start()
    await soon(() => expect(api.storedMessages).toEqual(['1', '2']))
  })
})

describe('a file that cannot be read', () => {
  test('is left to the next process', async () => {
    const path = await leave(1)
    // A link to a folder cannot be read as a file, even by root.
    const folder = join(directory, 'folder')
    await mkdir(folder)
    await symlink(folder, join(path, '..', '000000000000001-000000001-key.batch'))
    const { client, errors } = start()
    await soon(() => expect(client.stats.accepted).toBe(1))
    expect(errors).toMatchObject([{ message: expect.stringContaining('left to the next process') as string }])
    expect(await batchFiles()).toHaveLength(1)
  })
})

test('a mark of a time in the future has an unknown age: what it marks is not sent again', async () => {
  const path = await leave(1)
  const marked = Buffer.concat([
    encodeEntries([JSON.stringify({ level: 'info', message: 'future' })]),
    encodeAttempt(Date.now() + 7_200_000, 1),
  ])
  await writeFile(join(path, '..', '000000000000001-000000001-key.batch'), marked)
  const { dropped } = start()
  await soon(() => expect(api.storedMessages).toEqual(['1']))
  expect(dropped).toEqual([{ messages: ['future'], reason: 'outcome-unknown' }])
})

describe('a disk that hangs', () => {
  const small = { queueEntriesMax: 500, batchEntriesMax: 10 }
  test.each<[string, Partial<Files>]>([
    ['while it writes', { append: never }],
    ['while it removes a mark', { truncate: never }],
  ])('%s does not delay the end of a close', async (_name, files) => {
    api.defaultResponder = problem(503, 'overloaded')
    const { client } = start({}, files)
    log(client, 1, 3)
    await sleep(100)
    const startedAtMs = performance.now()
    const { dropped, pending } = await client.close({ timeoutMs: 200 })
    expect(performance.now() - startedAtMs).toBeLessThan(2_000)
    expect(dropped + pending).toBe(3)
    expect(client.stats).toMatchObject({ queuedEntries: 0, queuedBytes: 0, requestsInFlight: 0 })
  })

  test('does not get further entries when it has too many, and memory is bounded', async () => {
    let begun = 0
    const append = (): Promise<never> => {
      begun += 1
      return never()
    }
    const { client, errors } = start({ ...small, onDropped: () => undefined }, { append })
    const logBatches = async (batches: number): Promise<number> => {
      for (let i = 0; i < batches; i += 1) {
        // 30 KB per batch.
        for (let j = 0; j < 10; j += 1) client.info(`${i} ${j} ${'x'.repeat(3_000)}`)
        await nextTurn()
      }
      return heapBytes()
    }
    const before = await logBatches(700)
    expect(errors).toMatchObject([{ message: expect.stringContaining('does not keep up') as string }])
    const begunBefore = begun
    expect((await logBatches(700)) - before).toBeLessThan(3_000_000)
    expect(begun).toBe(begunBefore)
    expect(client.stats).toMatchObject({ queuedEntries: 500, dropped: 13_500 })
  })

  test('does not mean that more entries than the queue takes were logged at once: the disk gets the last of them', async () => {
    api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '60' })
    const { client, spool, errors } = start({ ...small, onDropped: () => undefined })
    for (let i = 0; i < 7_000; i += 1) client.info(`${i} ${'x'.repeat(3_000)}`)
    await spool.written()
    expect(errors).toEqual([])
    expect(client.stats.dropped).toBe(6_500)
    expect(await batchFiles()).toHaveLength(50)
  })

  test('before the folder exists gets a limited number of batches', () => {
    const spool = new DiskSpool({ directory })
    const created = Array.from({ length: 20_000 }, () => {
      const record = spool.create('key')
      void record?.remove()
      return record
    })
    expect(created.slice(0, 15_000)).not.toContain(undefined)
    expect(created.at(-1)).toBeUndefined()
  })

  test('needs no memory for entries that were dropped', async () => {
    const { client } = start({ ...small, onDropped: () => undefined }, { append: never })
    const before = heapBytes()
    for (let i = 0; i < 400; i += 1) {
      for (let j = 0; j < 10; j += 1) client.info(`${i} ${j} ${'x'.repeat(3_000)}`)
      await nextTurn()
    }
    // The queue has 1.5 MB. All that was logged is 12 MB.
    expect(heapBytes() - before).toBeLessThan(6_000_000)
  })
})

test('entries whose files were deleted are dropped as unreadable, and do not stop a flush', async () => {
  api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '1' })
  const { client, spool, errors, dropped } = start({ queueEntriesMax: 500, batchEntriesMax: 100 })
  for (let i = 0; i < 10; i += 1) {
    log(client, i * 100 + 1, i * 100 + 100)
    await spool.written()
  }
  const { spooledEntries } = client.stats
  expect(spooledEntries).toBeGreaterThanOrEqual(500)
  for (const file of await batchFiles()) await unlink(file)
  api.defaultResponder = accept
  const { accepted, pending } = await client.flush({ timeoutMs: 10_000 })
  expect({ accepted, pending }).toEqual({ accepted: 1_000 - spooledEntries, pending: 0 })
  expect(client.stats.dropped).toBe(spooledEntries)
  expect(new Set(dropped.map(({ reason }) => reason))).toEqual(new Set(['unreadable']))
  expect(errors[0]?.message).toContain('was deleted')
})

test('statistics tell what is only in the spool', async () => {
  await leave(3)
  api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '60' })
  const { client, spool } = start({ batchEntriesMax: 10, requestsInFlightMax: 1, queueEntriesMax: 20 })
  await soon(() => expect(client.stats.failedAttempts).toBe(1))
  for (let i = 0; i < 10; i += 1) {
    log(client, 1, 10)
    await spool.written()
  }
  const { queuedEntries, spooledEntries } = client.stats
  expect(queuedEntries).toBeLessThanOrEqual(20)
  expect(queuedEntries + spooledEntries).toBe(103)
})
