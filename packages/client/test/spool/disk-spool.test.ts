import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type ClientOptions, SluiceClient, type SluiceError } from '../../src/index.ts'
import { DiskSpool, type DiskSpoolOptions, type DiskSpoolPlatform } from '../../src/spool/index.ts'
import { encodeAttempt, encodeEntries } from '../../src/spool/batch-file.ts'
import { diskFiles } from '../../src/spool/files.ts'
import { accept, FakeApi, loseAnswer, problem, rejectOne } from '../support/fake-api.ts'

const HOUR_MS = 3_600_000

const soon = (check: () => unknown): Promise<unknown> => vi.waitFor(check, { timeout: 5_000, interval: 10 })

let api: FakeApi
let directory = ''
const clients: SluiceClient[] = []
beforeEach(async () => {
  api = new FakeApi()
  await api.start()
  directory = await mkdtemp(join(tmpdir(), 'spool-'))
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close({ timeoutMs: 0 })
  await api.stop()
  await rm(directory, { recursive: true })
})

function start(
  options: Partial<ClientOptions> = {},
  spoolOptions: Partial<DiskSpoolOptions> = {},
  platform: DiskSpoolPlatform = {},
) {
  const spool = new DiskSpool({ directory, ...spoolOptions }, platform)
  const errors: SluiceError[] = []
  const dropped: { json: string; reason: string }[] = []
  const client = new SluiceClient({
    url: api.url,
    apiKey: 'slk_test',
    flushIntervalMs: 20,
    flushOnExit: false,
    spool,
    onError: (error) => errors.push(error),
    onDropped: (entries, reason) => dropped.push(...entries.map(({ json }) => ({ json, reason }))),
    ...options,
  })
  clients.push(client)
  return { client, spool, errors, dropped }
}

/** The paths of all files of batches. */
async function batchFiles(): Promise<string[]> {
  const names = await readdir(directory, { recursive: true })
  return names
    .filter((name) => name.endsWith('.batch'))
    .map((name) => join(directory, name))
    .toSorted()
}

const log = (client: SluiceClient, first: number, last: number): void => {
  for (let i = first; i <= last; i += 1) client.info(String(i))
}
const range = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, i) => String(first + i))
const sorted = (values: readonly unknown[]): string[] =>
  values.map(String).toSorted((a, b) => Number(a) - Number(b))

describe('a file', () => {
  test('has the entries soon after they were logged, long before they are sent', async () => {
    const { client, spool } = start({ flushIntervalMs: 60_000 })
    log(client, 1, 3)
    await spool.written()
    const [path = '', ...others] = await batchFiles()
    expect(others).toEqual([])
    expect(await readFile(path, 'utf8')).toMatch(
      /^entries 3 .*\n.*"message":"1".*\n.*"message":"2".*\n.*"message":"3".*\n$/,
    )
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(api.received).toEqual([])
  })

  test('is removed after the acknowledgement, and the folder with the close', async () => {
    const { client } = start()
    log(client, 1, 250)
    expect(await client.close()).toMatchObject({ accepted: 250 })
    expect(await readdir(directory)).toEqual([])
  })

  test('is removed after a rejection', async () => {
    api.responders = [rejectOne(0), problem(400, 'invalid_json')]
    const { client } = start({ batchEntriesMax: 1 })
    log(client, 1, 2)
    expect(await client.flush()).toMatchObject({ rejected: 2 })
    await soon(async () => expect(await batchFiles()).toEqual([]))
  })

  test('marks an attempt whose outcome is unknown, and no other', async () => {
    const seen: string[] = []
    const look = async (): Promise<void> =>
      void seen.push(await readFile((await batchFiles())[0] ?? '', 'utf8'))
    api.responders = [
      (response, received) => void look().then(() => problem(503, 'overloaded')(response, received)),
      (response, received) => void look().then(() => loseAnswer(response, received)),
    ]
    const { client } = start({
      onRetry: () => void look(),
    })
    log(client, 1, 1)
    expect(await client.flush()).toMatchObject({ accepted: 1 })
    expect(seen.map((text) => text.includes('\nattempt '))).toEqual([true, false, true, true])
  })
})

describe('the next process sends', () => {
  test('what was never sent, with the key of its file', async () => {
    const first = start({ flushIntervalMs: 60_000 })
    log(first.client, 1, 3)
    await first.spool.written()
    const result = await first.client.close({ remaining: 'give-up' })
    expect(result).toMatchObject({ pending: 3, dropped: 0 })
    expect(first.client.stats).toMatchObject({ kept: 3, dropped: 0 })
    const [path = ''] = await batchFiles()

    start()
    await soon(() => expect(api.storedMessages).toEqual(['1', '2', '3']))
    expect(path).toContain(api.received[0]?.headers['idempotency-key'])
    await soon(async () => expect(await batchFiles()).toEqual([]))
  })

  test('what got no answer, with the same key and the same body', async () => {
    api.defaultResponder = loseAnswer
    const first = start()
    log(first.client, 1, 3)
    await soon(() => expect(api.received.length).toBeGreaterThan(0))
    await first.client.close({ timeoutMs: 0 })
    const before = api.received.length
    api.defaultResponder = accept

    const { client } = start()
    await soon(() => expect(client.stats.accepted).toBe(3))
    const [sent, resent] = [api.received[0], api.received[before]]
    expect(resent?.headers['idempotency-key']).toBe(sent?.headers['idempotency-key'])
    expect(resent?.body).toBe(sent?.body)
  })

  test('nothing whose outcome is unknown, after the window: it is dropped and reported', async () => {
    api.defaultResponder = loseAnswer
    const first = start({}, {}, { wallMs: () => Date.now() - HOUR_MS })
    log(first.client, 1, 2)
    await soon(() => expect(api.received.length).toBeGreaterThan(0))
    await first.client.close({ timeoutMs: 0 })
    const before = api.received.length

    const { client, dropped } = start()
    await soon(() =>
      expect(dropped).toMatchObject([{ reason: 'outcome-unknown' }, { reason: 'outcome-unknown' }]),
    )
    expect(api.received).toHaveLength(before)
    expect(client.stats.dropped).toBe(2)
    await soon(async () => expect(await batchFiles()).toEqual([]))
  })

  test('everything that was certainly not stored, however old it is', async () => {
    api.defaultResponder = problem(503, 'overloaded')
    const first = start({}, {}, { wallMs: () => Date.now() - 24 * HOUR_MS })
    log(first.client, 1, 2)
    await soon(() => expect(first.client.stats.failedAttempts).toBeGreaterThan(0))
    await first.client.close({ timeoutMs: 0 })
    api.defaultResponder = accept

    start()
    await soon(() => expect(api.storedMessages).toEqual(['1', '2']))
  })

  test('the parts of a split request again under the same keys', async () => {
    const partKeys = new Set<unknown>()
    api.defaultResponder = (response, received) => {
      if (received.logs.length > 1) return problem(413, 'body_too_large')(response, received)
      partKeys.add(received.headers['idempotency-key'])
      return received.logs[0]?.['message'] === '1'
        ? accept(response, received)
        : loseAnswer(response, received)
    }
    const first = start()
    log(first.client, 1, 2)
    await soon(() => expect([partKeys.size, first.client.stats.accepted]).toEqual([2, 1]))
    expect(await first.client.close({ timeoutMs: 0 })).toMatchObject({ accepted: 0, pending: 1, dropped: 0 })
    api.defaultResponder = (response, received) =>
      received.logs.length > 1
        ? problem(413, 'body_too_large')(response, received)
        : accept(response, received)

    start()
    await soon(() => expect(sorted(api.storedMessages)).toEqual(['1', '2']))
    expect(api.stored.size).toBe(2)
    await soon(async () => expect(await batchFiles()).toEqual([]))
  })
})

const nameOf = (path: string): string => /-[12]\.batch$/.exec(path)?.[0] ?? 'whole'

test('the file of a split request is removed after those of its parts are written', async () => {
  const operations: string[] = []
  const disk = diskFiles(false)
  const append = async (path: string, bytes: Buffer): Promise<void> => {
    await sleep(20)
    await disk.append(path, bytes)
    operations.push(`append ${nameOf(path)}`)
  }
  const remove = async (path: string): Promise<void> => {
    operations.push(`remove ${nameOf(path)}`)
    await disk.remove(path)
  }
  api.responders = [problem(413, 'body_too_large')]
  const { client } = start({}, {}, { files: { ...disk, append, remove } })
  log(client, 1, 2)
  expect(await client.flush()).toMatchObject({ accepted: 2 })
  const removed = operations.indexOf('remove whole')
  for (const part of ['append -1.batch', 'append -2.batch']) {
    expect(operations).toContain(part)
    expect(removed).toBeGreaterThan(operations.indexOf(part))
  }
})

/** Leaves a file with one part for each entry. */
async function leave(entries: number): Promise<string> {
  const first = start({ flushIntervalMs: 60_000 })
  for (let i = 1; i <= entries; i += 1) {
    log(first.client, i, i)
    await first.spool.written()
  }
  await first.client.close({ remaining: 'give-up' })
  return (await batchFiles())[0] ?? ''
}

describe('a damaged file', () => {
  test('that was cut off has the entries of its complete parts', async () => {
    const path = await leave(3)
    await truncate(path, (await stat(path)).size - 5)
    const { errors } = start()
    await soon(() => expect(api.storedMessages).toEqual(['1', '2']))
    expect(errors).toEqual([])
    await soon(async () => expect(await batchFiles()).toEqual([]))
  })

  test('without a complete part is removed', async () => {
    const path = await leave(1)
    await writeFile(join(path, '..', '000000000000001-000000001-key.batch'), 'entries 1 2')
    await writeFile(join(path, '..', '000000000000001-000000002-key.batch'), '')
    const { errors } = start()
    await soon(() => expect(api.storedMessages).toEqual(['1']))
    await soon(async () => expect(await batchFiles()).toEqual([]))
    expect(errors).toEqual([])
  })

  test('that may have been sent is removed and reported, and does not stop others', async () => {
    const path = await leave(1)
    const damaged = Buffer.concat([encodeEntries(['{}']), encodeAttempt(Date.now(), 2)])
    await writeFile(join(path, '..', '000000000000001-000000001-key.batch'), damaged)
    const { client, errors } = start()
    await soon(() => expect(api.storedMessages).toEqual(['1']))
    await soon(async () => expect(await batchFiles()).toEqual([]))
    expect(errors).toMatchObject([
      { kind: 'spool', message: expect.stringContaining('cannot be read; 2 entries are lost') as string },
    ])
    expect(client.stats.dropped).toBe(2)
  })

  test('with a damaged part has the entries of the others, and those of the part are dropped as unreadable', async () => {
    const path = await leave(3)
    const text = await readFile(path, 'utf8')
    await writeFile(path, text.replace('"message":"1"', '"message":"7"'))
    const drops: string[] = []
    const { client, errors } = start({ onDropped: (_entries, reason) => drops.push(reason) })
    await soon(() => expect(client.stats).toMatchObject({ accepted: 2, dropped: 1 }))
    expect(api.storedMessages).toEqual(['2', '3'])
    expect(drops).toEqual(['unreadable'])
    expect(errors).toMatchObject([{ message: expect.stringContaining('1 entries are lost') as string }])
    await soon(async () => expect(await batchFiles()).toEqual([]))
  })

  test('whose only part is damaged is removed, and its entries are dropped as unreadable', async () => {
    const path = await leave(1)
    const text = await readFile(path, 'utf8')
    await writeFile(path, text.replace('"message":"1"', '"message":"7"'))
    const { client, errors } = start()
    await soon(() => expect(client.stats.dropped).toBe(1))
    expect(api.received).toEqual([])
    expect(errors).toMatchObject([{ message: expect.stringContaining('is damaged') as string }])
    await soon(async () => expect(await batchFiles()).toEqual([]))
  })

  test('with a damaged part is sent again with the same body by another process', async () => {
    const path = await leave(3)
    const text = await readFile(path, 'utf8')
    await writeFile(path, text.replace('"message":"2"', '"message":"7"'))
    api.defaultResponder = loseAnswer
    const first = start()
    await soon(() => expect(first.client.stats.failedAttempts).toBeGreaterThan(0))
    await first.client.close({ timeoutMs: 0 })
    api.defaultResponder = accept
    const { client } = start()
    await soon(() => expect(client.stats.accepted).toBe(2))
    expect(new Set(api.received.map(({ body }) => body)).size).toBe(1)
  })

  test('of another program is not touched', async () => {
    const path = await leave(1)
    await writeFile(join(path, '..', 'notes.txt'), 'text')
    start()
    await soon(() => expect(api.storedMessages).toEqual(['1']))
    expect(await readdir(directory, { recursive: true })).toContainEqual(expect.stringMatching(/notes\.txt$/))
  })
})

describe('an outage', () => {
  test('longer than memory lasts is survived: entries wait on disk', async () => {
    api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '1' })
    const { client, spool, dropped } = start({ queueEntriesMax: 500 })
    for (let first = 1; first <= 2_000; first += 50) {
      log(client, first, first + 49)
      await spool.written()
      expect(client.stats.queuedEntries).toBeLessThanOrEqual(500)
    }
    expect(dropped).toEqual([])
    api.defaultResponder = accept
    expect(await client.flush()).toMatchObject({ accepted: 2_000, pending: 0 })
    expect(sorted(api.storedMessages)).toEqual(range(1, 2_000))
    expect(client.stats).toMatchObject({ queuedEntries: 0, queuedBytes: 0, dropped: 0 })
  }, 30_000)

  test.each([
    ['drop-oldest', (kept: readonly string[]) => Number(kept.at(-1)) === 400],
    ['drop-newest', (kept: readonly string[]) => Number(kept[0]) === 1],
  ] as const)(
    'longer than the disk lasts ends with %s',
    async (overflow, keepsTheRightOnes) => {
      api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '1' })
      const bytesMax = 8 * 1024 * 1024
      const { client, spool, dropped } = start(
        { overflow, batchEntriesMax: 10, queueEntriesMax: 50 },
        { bytesMax },
      )
      for (let i = 1; i <= 400; i += 1) {
        client.info(String(i), { text: 'x'.repeat(50_000) })
        if (i % 10 === 0) await spool.written()
      }
      const messages = dropped.map(({ json }) => (JSON.parse(json) as { message: string }).message)
      expect(dropped.length).toBeGreaterThan(150)
      expect(dropped.every(({ reason }) => reason === 'overflow')).toBe(true)
      const sizes = await Promise.all((await batchFiles()).map(async (path) => (await stat(path)).size))
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(bytesMax)
      api.defaultResponder = accept
      await client.flush()
      const stored = sorted(api.storedMessages)
      expect(keepsTheRightOnes(stored)).toBe(true)
      expect(sorted([...stored, ...messages])).toEqual(range(1, 400))
    },
    30_000,
  )
})

const full = (): never => {
  throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
}

describe('a disk that does not take files', () => {
  test('is reported once, and entries are sent from memory', async () => {
    const { client, errors } = start(
      { batchEntriesMax: 10 },
      {},
      { files: { ...diskFiles(false), append: async () => full() } },
    )
    log(client, 1, 35)
    expect(await client.flush()).toMatchObject({ accepted: 35 })
    expect(sorted(api.storedMessages)).toEqual(range(1, 35))
    expect(errors).toMatchObject([
      { kind: 'spool', message: expect.stringMatching(/memory only.*ENOSPC/) as string },
    ])
  })

  test('in the middle of a batch does not leave a part of it behind', async () => {
    let isFull = false
    const disk = diskFiles(false)
    const append = async (path: string, bytes: Buffer): Promise<void> => {
      await disk.append(path, isFull ? bytes.subarray(0, 20) : bytes)
      if (isFull) full()
    }
    api.defaultResponder = loseAnswer
    const { client, spool } = start({ flushIntervalMs: 100 }, {}, { files: { ...disk, append } })
    log(client, 1, 1)
    await spool.written()
    isFull = true
    log(client, 2, 2)
    await spool.written()
    await soon(() => expect(api.received.length).toBeGreaterThan(0))
    expect(await batchFiles()).toEqual([])
    expect(api.received[0]?.logs).toHaveLength(2)
    expect(await client.close({ timeoutMs: 0 })).toMatchObject({ dropped: 2, pending: 0 })
  })

  test('is used again when it has space', async () => {
    let isFull = true
    const disk = diskFiles(false)
    const append = async (path: string, bytes: Buffer): Promise<void> =>
      isFull ? full() : disk.append(path, bytes)
    const { client, spool, errors } = start(
      { batchEntriesMax: 1, flushIntervalMs: 60_000 },
      {},
      { files: { ...disk, append } },
    )
    log(client, 1, 1)
    await client.flush()
    isFull = false
    log(client, 2, 2)
    await client.flush()
    isFull = true
    log(client, 3, 3)
    await client.flush()
    await spool.written()
    expect(errors).toHaveLength(2)
    expect(client.stats.accepted).toBe(3)
  })

  test.each<[string, () => Promise<string>]>([
    [
      'a file',
      async () => {
        const path = join(directory, 'file')
        await writeFile(path, '')
        return path
      },
    ],
    ['a path that is too long', async () => join(directory, 'x'.repeat(150))],
  ])('because the directory is %s, is reported', async (_name, makePath) => {
    const { client, errors } = start({}, { directory: await makePath() })
    log(client, 1, 3)
    expect(await client.flush()).toMatchObject({ accepted: 3 })
    expect(errors).toMatchObject([
      { kind: 'spool', message: expect.stringContaining('cannot be opened') as string },
    ])
  })
})

describe('two processes with one directory', () => {
  test('do not touch the files of each other', async () => {
    api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '1' })
    const [a, b] = [start(), start()]
    log(a.client, 1, 10)
    log(b.client, 11, 20)
    await Promise.all([a.spool.written(), b.spool.written()])
    start()
    await sleep(100)
    api.defaultResponder = accept
    await Promise.all([a.client.flush(), b.client.flush()])
    expect(sorted(api.messages.filter((_message, i) => i >= 0)).length).toBeGreaterThanOrEqual(20)
    expect(sorted(api.storedMessages)).toEqual(range(1, 20))
  })
})

test('fsync waits for the disk, of the file and of a new name', async () => {
  // The effect needs a power cut. The test counts the calls.
  const { open } = await import('node:fs/promises')
  const probe = await open(join(directory, 'probe'), 'w')
  const prototype = Object.getPrototypeOf(probe) as {
    datasync: () => Promise<void>
    sync: () => Promise<void>
  }
  await probe.close()
  const calls: string[] = []
  const original = { datasync: prototype.datasync, sync: prototype.sync }
  for (const name of ['datasync', 'sync'] as const) {
    prototype[name] = function count(this: unknown) {
      calls.push(name)
      return original[name].call(this)
    }
  }
  try {
    await mkdir(join(directory, 'a'))
    for (const fsync of [false, true]) {
      const files = diskFiles(fsync)
      await files.append(join(directory, 'a', String(fsync)), Buffer.from('1'))
      await files.append(join(directory, 'a', String(fsync)), Buffer.from('2'))
    }
    expect(calls).toEqual(['datasync', 'sync', 'datasync'])
  } finally {
    Object.assign(prototype, original)
  }
})

test('files of other processes are adopted only as far as there is room for them, the overhead of each included', async () => {
  api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '60' })
  const left = join(directory, '00000001.left')
  await mkdir(left)
  const file = encodeEntries([JSON.stringify({ level: 'info', message: 'left' })])
  const files = 3_000
  for (let i = 0; i < files; i += 1)
    await writeFile(join(left, `000000000000001-${String(i).padStart(9, '0')}-key-${i}.batch`), file)
  const { client, errors } = start({}, { bytesMax: 8 * 1024 * 1024 })
  await soon(() => expect(client.stats.spooledEntries).toBeGreaterThan(0))
  log(client, 1, 1)
  await sleep(100)
  expect(client.stats.dropped).toBe(0)
  expect(errors).toEqual([])
  expect(client.stats.spooledEntries).toBeLessThan(2_100)
})

test('a limit that is too small for a request is rejected', () => {
  expect(() => new DiskSpool({ directory, bytesMax: 1_000 })).toThrow(TypeError)
})
