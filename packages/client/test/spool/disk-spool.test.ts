import { basename } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { ClientOptions } from '../../src/index.ts'
import { encodeLine, parseFile, parseFileName } from '../../src/spool/batch-file.ts'
import type { Disk } from '../../src/spool/disk.ts'
import { DiskSpool, type DiskSpoolOptions } from '../../src/spool/disk-spool.ts'
import { fakeClient } from '../support/fake-client.ts'
import { type FakeRequest, pass, problemOf, refused } from '../support/fake-fetch.ts'
import { heapBytes } from '../support/heap-bytes.ts'
import { full, hang, MemoryDisk } from '../support/memory-disk.ts'

let shared: MemoryDisk
beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 23) })
  shared = new MemoryDisk()
})

const HOUR_MS = 3_600_000
const ignore = (): void => undefined

/** A process with a client. */
function start(
  options: Partial<ClientOptions> = {},
  disk: Partial<Disk> = {},
  spoolOptions: Partial<DiskSpoolOptions> = {},
) {
  const { kill, ...own } = shared.process()
  const spool = new DiskSpool({ directory: '/spool', ...spoolOptions }, { ...own, ...disk })
  const fake = fakeClient({ spool, ...options })
  return { ...fake, spool, kill }
}

/** A process with a client, which has taken over the files of others, and sent entries. */
async function running(entries = 0, ...options: Parameters<typeof start>) {
  const fake = start(...options)
  await fake.send(entries, 1_000)
  return fake
}

/** Leaves the files of a process that was killed, with entries that were never sent. Each is a line. */
async function leave(entries: number): Promise<void> {
  const { kill, send } = start({ flushIntervalMs: HOUR_MS })
  for (let i = 0; i < entries; i += 1) await send(1)
  kill()
}

function put(name: string, content: string | Uint8Array): void {
  shared.files.set(`/spool/${name}`, Buffer.from(content))
}
const lineOf = (...messages: string[]): Buffer =>
  encodeLine(messages.map((message) => JSON.stringify({ level: 'info', message })))
const damagedLineOf = (...messages: string[]): Buffer => lineOf(...messages).fill(0, 20, 21)

/** Whether the name of the oldest file, which has one entry, has the mark of an attempt. */
const isMarked = (): boolean => /\.\d+-1\.batch$/.test(shared.paths[0] ?? '')

const halfOf = (path: string): string =>
  /-[12]$/.exec(parseFileName(basename(path))?.idempotencyKey ?? '')?.[0] ?? 'whole'

describe('a file', () => {
  test('has the entries soon after they were logged, long before they are sent', async () => {
    const { api, spool, log } = start({ flushIntervalMs: HOUR_MS })
    log(3)
    await spool.written()
    expect(shared.batches).toEqual([
      expect.stringMatching(/^[0-9a-f]{16}(\t\{[^\t]*"message":"\d"[^\t]*\}){3}\n$/),
    ])
    expect(api.requests).toEqual([])
  })

  test('is removed after the response, and the lock with the close', async () => {
    const { client, api, send } = start({ batchEntriesMax: 1, requestsInFlightMax: 1 })
    await send(2)
    await api.accept()
    await api.respond(400, problemOf('invalid_json'))
    expect(shared.paths).toEqual([])
    await client.close()
    expect([...shared.files.keys()]).toEqual([])
  })

  test('is marked while the outcome of an attempt is unknown, and not after others', async () => {
    const { api, send } = start()
    await send(1)
    expect(isMarked()).toBe(false)
    await pass(1_000)
    expect(isMarked()).toBe(true)
    await api.respond(503, problemOf('overloaded'))
    expect(isMarked()).toBe(false)
    await pass(1_000)
    await api.respond(502)
    expect(isMarked()).toBe(true)
  })
})

describe('the next process sends', () => {
  test('what was never sent, with the key of its file', async () => {
    const first = start({ flushIntervalMs: HOUR_MS })
    first.log(3)
    expect(await first.close({ remaining: 'give-up' })).toMatchObject({ pending: 3, dropped: 0 })
    expect(first.client.stats).toMatchObject({ kept: 3, dropped: 0 })
    const [path = ''] = shared.paths
    const { api } = await running()
    expect(api.requests).toMatchObject([{ messages: ['1', '2', '3'] }])
    expect(path).toContain(api.last.key)
    await api.accept()
    expect(shared.paths).toEqual([])
  })

  test.each<[string, (request: FakeRequest) => void, number, boolean]>([
    ['what got no response, with the same key and the same body', ignore, 0, true],
    ['nothing whose outcome is unknown, after the window', (request) => request.respond(502), HOUR_MS, false],
    ['everything that was certainly not stored', (request) => request.fail(refused()), 24 * HOUR_MS, true],
  ])('after kill -9: %s', async (_name, end, laterMs, isSent) => {
    const first = await running(3)
    end(first.api.last)
    await pass(0)
    first.kill()
    vi.setSystemTime(Date.now() + laterMs)
    const { api, reported } = await running()
    const messages = ['1', '2', '3']
    expect(api.requests).toMatchObject(isSent ? [{ key: first.api.last.key, messages }] : [])
    expect(reported.drops).toEqual(isSent ? [] : [{ messages, reason: 'outcome-unknown' }])
    expect(shared.paths).toHaveLength(isSent ? 1 : 0)
  })

  test('nothing with a mark of a time in the future: its age is unknown', async () => {
    put(`0000000a.000000000000001-000000001-key.${Date.now() + 2 * HOUR_MS}-1.batch`, lineOf('future'))
    const { api, reported } = await running()
    expect(api.requests).toEqual([])
    expect(reported.drops).toEqual([{ messages: ['future'], reason: 'outcome-unknown' }])
  })
})

describe('of a split request', () => {
  test('the file is removed after the files of its halves are written', async () => {
    const operations: string[] = []
    const own = shared.process()
    const write: Disk['write'] = async (path, ...rest) => {
      await own.write(path, ...rest)
      operations.push(`write ${halfOf(path)}`)
    }
    const remove: Disk['remove'] = async (path) => void operations.push(`remove ${halfOf(path)}`)
    const { api } = await running(2, {}, { write, remove })
    await api.respond(413)
    expect(operations).toEqual(['write whole', 'write -1', 'write -2', 'remove whole'])
  })

  test('whose halves the disk does not take, the file stays until both are acknowledged', async () => {
    const own = shared.process()
    const write: Disk['write'] = (path, ...rest) =>
      halfOf(path) === 'whole' ? own.write(path, ...rest) : full()
    const { api } = await running(2, {}, { write })
    await api.respond(413)
    api.requests[1]?.accept()
    await pass(0)
    expect(shared.paths).toHaveLength(1)
    api.requests[2]?.accept()
    await pass(0)
    expect(shared.paths).toEqual([])
  })

  test.each([true, false])('the next process uses the keys of the halves, written: %s', async (isWritten) => {
    const own = shared.process()
    const write: Disk['write'] = (path, ...rest) =>
      isWritten || halfOf(path) === 'whole' ? own.write(path, ...rest) : full()
    const first = await running(2, {}, { ...own, write })
    await first.api.respond(413)
    const [whole, accepted, lost] = first.api.requests
    accepted?.accept()
    await pass(0)
    own.kill()
    const { api } = await running()
    if (!isWritten) await api.respond(413)
    const keys = isWritten ? [lost?.key] : [whole?.key, accepted?.key, lost?.key]
    expect(api.requests.map(({ key }) => key)).toEqual(keys)
    expect(api.last.messages).toEqual(['2'])
  })
})

describe('a damaged file', () => {
  const name = '0000000a.000000000000001-000000001-key'

  test('without a complete line is removed, and one of another program is not touched', async () => {
    put(`${name}.batch`, 'abc')
    put('0000000a.000000000000001-000000002-key.batch', '')
    put('0000000a.notes.txt', 'text')
    put('key.batch', 'text')
    const { client, reported } = await running()
    expect([...shared.files.keys()]).toContain('/spool/0000000a.notes.txt')
    expect(shared.paths).toEqual(['/spool/key.batch'])
    expect(reported.errors).toEqual([])
    expect(client.stats.dropped).toBe(0)
  })

  test.each([
    ['that may have been sent, and lost an entry', `${name}.1-3.batch`, lineOf('a', 'b'), 3],
    ['whose only line is damaged', `${name}.batch`, damagedLineOf('a', 'b'), 2],
  ])('%s is removed and reported, and does not stop others', async (_name, file, line, lost) => {
    await leave(1)
    put(file, line)
    const { client, api, reported } = await running()
    expect(api.requests).toMatchObject([{ messages: ['1'] }])
    expect(client.stats.dropped).toBe(lost)
    expect(reported.drops).toEqual([{ messages: [], reason: 'unreadable' }])
    const message = expect.stringContaining(`at least ${lost} entries are lost`) as string
    expect(reported.errors).toMatchObject([{ kind: 'spool', message }])
  })

  test('with a damaged line has the entries of the others, and the same body in each process', async () => {
    put(`${name}.batch`, Buffer.concat([lineOf('a'), damagedLineOf('b'), lineOf('c', 'd')]))
    const first = await running()
    await first.api.respond(502)
    expect(first.reported.drops).toEqual([{ messages: [], reason: 'unreadable' }])
    first.kill()
    const second = await running()
    for (const { api } of [first, second])
      expect(api.last).toMatchObject({ key: 'key', messages: ['a', 'c', 'd'] })
    expect(second.client.stats.dropped).toBe(0)
  })

  test('that was deleted is dropped as unreadable, and does not stop a flush', async () => {
    const { client, api, reported, log, spool } = await running(1, { queueEntriesMax: 500 })
    await api.respond(503, problemOf('overloaded'), { 'retry-after': '1' })
    for (let i = 0; i < 10; i += 1) {
      log(100)
      await spool.written()
    }
    const { spooledEntries } = client.stats
    expect(spooledEntries).toBeGreaterThanOrEqual(500)
    for (const path of shared.paths) shared.files.delete(path)
    api.isAccepting = true
    const flushed = client.flush()
    await pass(2_000)
    const counts = { accepted: 1_001 - spooledEntries, dropped: spooledEntries, pending: 0 }
    expect(await flushed).toMatchObject(counts)
    expect(reported.drops.every(({ reason }) => reason === 'unreadable')).toBe(true)
  })
})

describe('an outage', () => {
  test('longer than memory lasts is survived: entries wait on disk', async () => {
    const { client, api, reported, log, spool } = start({ queueEntriesMax: 500 })
    for (let i = 0; i < 40; i += 1) {
      log(50)
      await spool.written()
      api.failAll()
      expect(client.stats.queuedEntries).toBeLessThanOrEqual(500)
    }
    const { queuedEntries, spooledEntries } = client.stats
    expect(queuedEntries + spooledEntries).toBe(2_000)
    api.isAccepting = true
    const flushed = client.flush()
    api.failAll()
    await pass(60_000)
    expect(await flushed).toMatchObject({ accepted: 2_000, pending: 0 })
    expect(reported.drops).toEqual([])
    expect(client.stats).toMatchObject({ queuedEntries: 0, queuedBytes: 0, spooledEntries: 0 })
    expect(shared.paths).toEqual([])
  })

  test.each(['drop-oldest', 'drop-newest'] as const)(
    'longer than the disk lasts ends with %s',
    async (overflow) => {
      const bytesMax = 8 * 1024 * 1024
      const options = { overflow, batchEntriesMax: 10, queueEntriesMax: 50, flushIntervalMs: HOUR_MS }
      const { client, api, reported, spool } = start(options, {}, { bytesMax })
      for (let i = 1; i <= 400; i += 1) {
        client.info(String(i), { text: 'x'.repeat(50_000) })
        await spool.written()
        api.failAll()
      }
      const bytes = Buffer.concat([...shared.files.values()]).length
      expect(bytes).toBeLessThan(bytesMax)
      expect(bytes).toBeGreaterThan(bytesMax * 0.8)
      const dropped = reported.drops.flatMap(({ messages }) => messages.map(Number))
      expect(dropped.length).toBeGreaterThan(150)
      expect(dropped.includes(1)).toBe(overflow === 'drop-oldest')
      expect(dropped.includes(400)).toBe(overflow === 'drop-newest')
      expect(reported.drops.every(({ reason }) => reason === 'overflow')).toBe(true)
    },
  )
})

/** A disk whose operation fails while it is full. */
function filling(name: 'write' | 'rename' | 'lock') {
  const own = shared.process()
  const state = { isFull: true }
  const operation = vi.fn<(...values: never[]) => Promise<unknown>>((...values) =>
    state.isFull ? full() : (own[name] as (...values: never[]) => Promise<unknown>)(...values),
  )
  return { state, operation, disk: { [name]: operation } as unknown as Partial<Disk> }
}

describe('a disk that is full', () => {
  test('is reported once until it has space, and entries are sent from memory', async () => {
    const { state, disk } = filling('write')
    const { client, api, reported, send } = start({ batchEntriesMax: 1 }, disk)
    api.isAccepting = true
    for (const isFull of [true, true, false, true]) {
      state.isFull = isFull
      await send(1)
    }
    expect(client.stats.accepted).toBe(4)
    const message = expect.stringContaining('ENOSPC') as string
    expect(reported.errors).toMatchObject([{ kind: 'spool', message }, { kind: 'spool' }])
    expect(shared.paths).toEqual([])
  })

  test('is not asked again for each entry, and takes the rest with the next attempt', async () => {
    const { state, operation, disk } = filling('write')
    const { send } = start({}, disk)
    for (let i = 0; i < 20; i += 1) await send(1)
    expect(operation).toHaveBeenCalledTimes(1)
    state.isFull = false
    await pass(1_000)
    expect(shared.batches).toEqual([expect.stringMatching(/(\t[^\t]*){20}\n/)])
  })

  test('does not lose what another process left: it is sent without a mark, and its file stays until then', async () => {
    await leave(3)
    const { api, reported, close } = await running(0, {}, { write: full, rename: renameOnly(/0{7}2\./) })
    expect(shared.paths).toHaveLength(1)
    api.last.respond(502)
    expect(await close()).toMatchObject({ pending: 3, dropped: 0 })
    expect(reported.drops).toEqual([])
    const { api: next } = await running()
    expect(next.requests).toMatchObject([{ messages: ['1', '2', '3'] }])
  })

  test('gets the time of the first attempt with the mark that it takes later', async () => {
    const { state, disk } = filling('rename')
    const { api } = await running(1, {}, disk)
    const firstAttemptMs = Date.now()
    api.last.respond(502)
    state.isFull = false
    await pass(1_000)
    expect(api.requests).toHaveLength(2)
    expect(shared.paths).toEqual([expect.stringContaining(`.${firstAttemptMs}-1.batch`)])
  })

  test('is not said to have kept what it did not take', async () => {
    const { reported, send, close } = start({ flushIntervalMs: HOUR_MS }, { write: full })
    await send(3)
    expect(await close({ remaining: 'give-up' })).toMatchObject({ pending: 0, dropped: 3 })
    expect(reported.drops).toEqual([{ messages: ['1', '2', '3'], reason: 'closed' }])
  })

  test('while a batch is being written does not lose the batch', async () => {
    const gate = Promise.withResolvers<void>()
    const options = { batchEntriesMax: 10, requestsInFlightMax: 1, queueEntriesMax: 20 } as const
    const write = (): Promise<void> => gate.promise.then(full)
    const { client, api, reported, log } = start({ ...options, overflow: 'drop-newest' }, { write })
    api.isAccepting = true
    log(21)
    await pass(50)
    log(1)
    gate.resolve()
    await pass(1_000)
    expect(reported.drops.flatMap(({ messages }) => messages)).toEqual(['21', '22'])
    expect(client.stats).toMatchObject({ accepted: 20, queuedEntries: 0, queuedBytes: 0 })
  })

  test('that took a part of a line gets the complete one in its place', async () => {
    let isFull = false
    const own = shared.process()
    const write: Disk['write'] = async (path, bytes, position) => {
      await own.write(path, isFull ? bytes.subarray(0, 20) : bytes, position)
      if (isFull) await full()
    }
    const { send } = start({}, { write })
    await send(1)
    isFull = true
    await send(1)
    expect(shared.batches[0]).toMatch(/^[^\n]*\n[^\n]+$/)
    isFull = false
    await pass(1_000)
    expect(parseFile(Buffer.from(shared.batches[0] ?? ''))).toMatchObject({ lost: 0, entries: { length: 2 } })
    expect(shared.batches[0]).toMatch(/^([^\n]*\n){2}$/)
  })
})

/** Renames files only to names that match. */
function renameOnly(pattern: RegExp): Disk['rename'] {
  const own = shared.process()
  return (from, to) => (pattern.test(to) && !pattern.test(from) ? own.rename(from, to) : full())
}

describe('a directory', () => {
  test('that cannot be used is retried each minute, and then gets what was logged before', async () => {
    const { state, disk } = filling('lock')
    const { api, reported, log, send, close } = start({ batchEntriesMax: 1 }, disk)
    await send(1)
    await api.respond(503, problemOf('overloaded'), { 'retry-after': '3600' })
    expect(reported.errors).toMatchObject([{ kind: 'spool' }])
    log(1)
    state.isFull = false
    await pass(60_000)
    // The first one may not be written any more: it has been sent.
    expect(shared.batches).toEqual([expect.stringContaining('"message":"2"')])
    expect(await close()).toMatchObject({ pending: 1, dropped: 1 })
  })

  test('may be shared: clients do not touch the files of each other', async () => {
    const [a, b] = [start(), start()]
    a.log(1)
    await b.send(1)
    const before = shared.paths
    const third = start()
    await pass(120_000)
    expect(third.api.requests).toEqual([])
    expect(shared.paths.map((path) => path.split('.')[0])).toEqual(before.map((path) => path.split('.')[0]))
  })

  test('with the files of a killed process is adopted once, although several clients start', async () => {
    for (let i = 0; i < 20; i += 1) await leave(1)
    const clients = [start({ batchEntriesMax: 1 }), start(), start()]
    for (const { api } of clients) api.isAccepting = true
    await pass(1_000)
    expect(clients.reduce((sum, { client }) => sum + client.stats.accepted, 0)).toBe(20)
    expect(clients.flatMap(({ reported }) => reported.errors)).toEqual([])
    expect([...shared.files.keys()]).toHaveLength(clients.length)
  })

  test('of a process that ends later is adopted within a minute', async () => {
    const first = start({ flushIntervalMs: HOUR_MS })
    first.log(1)
    const second = start()
    await pass(30_000)
    first.kill()
    await pass(31_000)
    expect(second.api.requests).toMatchObject([{ messages: ['1'] }])
  })

  test('with a file that cannot be read: it stays, is reported once, and does not stop others', async () => {
    await leave(1)
    const broken = '0000000a.000000000000001-000000001-key.batch'
    put(broken, lineOf('a'))
    const own = shared.process()
    const read: Disk['read'] = (path) =>
      path.endsWith(broken) ? Promise.reject(new Error('EACCES')) : own.read(path)
    const { client, api, reported } = start({}, { read })
    api.isAccepting = true
    await pass(130_000)
    expect(client.stats.accepted).toBe(1)
    expect(reported.errors).toMatchObject([{ message: expect.stringContaining('cannot adopt') as string }])
    expect(shared.paths).toEqual([`/spool/${broken}`])
  })

  test('is adopted only as far as there is room, the overhead of each file included', async () => {
    for (let i = 0; i < 3_000; i += 1)
      put(`0000000a.000000000000001-${String(i).padStart(9, '0')}-key-${i}.batch`, lineOf('left'))
    const { client, reported, send } = await running(0, {}, {}, { bytesMax: 8 * 1024 * 1024 })
    await send(1)
    expect(client.stats.dropped).toBe(0)
    expect(reported.errors).toEqual([])
    const adopted = client.stats.queuedEntries + client.stats.spooledEntries
    expect(adopted).toBeGreaterThan(1_900)
    expect(adopted).toBeLessThan(2_100)
  })
})

describe('a disk that hangs', () => {
  const late = { kind: 'spool', message: expect.stringContaining('did not respond within 5000 ms') as string }

  test.each<[string, Partial<Disk>]>([
    ['while it writes', { write: hang }],
    ['while it marks an attempt', { rename: hang }],
    ['before there is a directory', { lock: hang }],
  ])('%s delays requests by five seconds at most, and a close by half a second', async (_name, hanging) => {
    const { client, api, reported, log } = start({ batchEntriesMax: 1 }, hanging)
    api.isAccepting = true
    log(4)
    await pass(4_900)
    expect(client.stats.accepted).toBe(0)
    await pass(200)
    expect(client.stats.accepted).toBe(4)
    // It is not waited for again before it has responded.
    log(4)
    await pass(1)
    expect(client.stats.accepted).toBe(8)
    expect(reported.errors).toMatchObject([late])
    const other = start({ flushIntervalMs: 0 }, hanging)
    await other.send(3, 100)
    const closed = other.client.close({ timeoutMs: 200 })
    await pass(750)
    const { dropped, pending } = await closed
    expect(dropped + pending).toBe(3)
    expect(other.client.stats).toMatchObject({ queuedEntries: 0, queuedBytes: 0, requestsInFlight: 0 })
  })

  test('while it removes a mark delays the next attempt by five seconds at most', async () => {
    let renames = 0
    const own = shared.process()
    const rename: Disk['rename'] = (from, to) => ((renames += 1) > 1 ? hang() : own.rename(from, to))
    const { client, api, reported } = await running(1, {}, { rename })
    api.last.respond(503, problemOf('overloaded'))
    await pass(5_500)
    await api.accept()
    expect(client.stats.accepted).toBe(1)
    expect(reported.errors).toMatchObject([late])
  })

  test('while it reads: the entries are read later', async () => {
    await leave(2)
    let reads = 0
    const own = shared.process()
    // The first one adopts the file.
    const read: Disk['read'] = (path) => ((reads += 1) === 2 ? hang() : own.read(path))
    const { client, api, reported, log } = start({ requestsInFlightMax: 1, batchEntriesMax: 2 }, { read })
    api.isAccepting = true
    log(1)
    await pass(6_000)
    expect(client.stats).toMatchObject({ accepted: 1, spooledEntries: 2 })
    expect(reported.errors).toMatchObject([late])
    expect(shared.paths).toHaveLength(1)
  })

  test('is waited for again when it has responded', async () => {
    const responses: (() => void)[] = []
    const rename = (): Promise<void> => new Promise((resolve) => responses.push(resolve))
    const { client, api, log } = start({}, { rename })
    api.isAccepting = true
    log(1)
    await pass(6_500)
    expect(client.stats.accepted).toBe(1)
    responses[0]?.()
    log(1)
    await pass(2_000)
    expect(client.stats.accepted).toBe(1)
    responses[1]?.()
    await pass(0)
    expect(client.stats.accepted).toBe(2)
  })

  test('gets few operations at a time and a limited number of batches, and memory is bounded', async () => {
    const write = vi.fn<Disk['write']>(hang)
    const errors: string[] = []
    const spool = openSpool({ write }, errors)
    const useRecords = recordUser(spool, 'x'.repeat(30_000))
    const before = await useRecords(10_000)
    expect(spool.create('key')).toBeUndefined()
    expect(errors).toEqual([expect.stringContaining('does not keep up')])
    expect((await useRecords(10_000)) - before).toBeLessThan(2_000_000)
    expect(write).toHaveBeenCalledTimes(4)
  })

  test('does not mean that more was logged at once than the queue takes: the disk gets the last entries', async () => {
    const { client, reported, spool } = start({
      queueEntriesMax: 500,
      batchEntriesMax: 10,
      onDropped: ignore,
    })
    for (let i = 0; i < 7_000; i += 1) client.info(`${i} ${'x'.repeat(3_000)}`)
    await spool.written()
    expect(reported.errors).toEqual([])
    expect(client.stats.dropped).toBe(6_500)
    expect(shared.paths).toHaveLength(50)
  })
})

test('records whose files cannot be removed need no memory', async () => {
  const useRecords = recordUser(openSpool({ write: full, remove: full }), '{}')
  const before = await useRecords(1_000)
  // 10,000 records would have about 5 MB.
  expect((await useRecords(10_000)) - before).toBeLessThan(1_000_000)
})

/** A spool without a client. */
function openSpool(disk: Partial<Disk>, errors: string[] = []): DiskSpool {
  const spool = new DiskSpool({ directory: '/spool' }, { ...shared.process(), ...disk })
  spool.open({ onRecovered: ignore, onLost: ignore, onError: (message) => errors.push(message) })
  return spool
}

/** Uses records one after the other. @returns the memory in use afterwards */
function recordUser(spool: DiskSpool, json: string): (count: number) => Promise<number> {
  return async (count) => {
    for (let i = 0; i < count; i += 1) {
      const record = spool.create('key')
      record?.add(`${json}${i}`, json.length)
      if (i % 100 === 0) await pass(0)
      void record?.remove()
    }
    await pass(0)
    return heapBytes()
  }
}
