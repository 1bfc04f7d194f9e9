import { QueueUnavailableError } from '@sluice/queue'
import { type Owned, ownedRows, type Rows } from '@sluice/row-scanner'
import { namedRows } from '@sluice/rows/testing'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { chunkLimits, ChunkWriter } from '../../src/chunks/chunk-writer.ts'
import { FakeQueue, type PendingAdd } from '../support/fake-queue.ts'

let queue: FakeQueue
let writer: ChunkWriter
let nowMs: number
let clockStepMs: number

/** Resolves at the end of the event loop's iteration. An idle writer sends then. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const addAt = (index: number): PendingAdd => {
  const add = queue.adds[index]
  if (add === undefined) throw new Error(`there were only ${queue.adds.length} adds`)
  return add
}
const rowsOf = (...names: readonly string[]): Rows<Owned> => ownedRows(names.length, namedRows(...names))
const writeRows = (...names: readonly string[]): Promise<unknown> => writer.write(rowsOf(...names))
/** The name of a row whose block has this many bytes. */
const nameOf = (bytes: number): string => {
  const name = 'a'.repeat(bytes)
  return name.slice(namedRows(name).length - bytes)
}
/** Counts as so many rows. It has one, so that no thread packs it. */
const manyRows = (count: number): Rows<Owned> => ownedRows(count, namedRows('a'))
const fullChunk = manyRows(chunkLimits.rowsMax)
const outcome = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'written',
    (error: Error) => error.name,
  )

const confirmAll = async (writes: readonly Promise<unknown>[]): Promise<void> => {
  queue.holding = false
  for (const { confirm } of queue.adds) confirm()
  await Promise.all(writes)
}

/** Three clients write rows at a constant rate. */
const writeFor = async (adds: number, rowsPerS: number): Promise<void> => {
  const rows = manyRows((rowsPerS * chunkLimits.fastIntervalMs) / 3_000)
  for (let add = 0; add < adds; add += 1) {
    nowMs += chunkLimits.fastIntervalMs
    await Promise.all([1, 2, 3].map(() => writer.write(rows)))
  }
  queue.adds.length = 0
}

function writerOf(shards: number): ChunkWriter {
  let id = 0
  return new ChunkWriter({
    queues: Array.from({ length: shards }, () => queue),
    makeId: () => `chunk-${(id += 1)}`,
    records: { windowMs: 0, perProjectMax: 0 },
    monotonicMs: () => (nowMs += clockStepMs),
  })
}

beforeEach(() => {
  queue = new FakeQueue({ holding: true })
  nowMs = 0
  // Each call of the clock advances it: time passes between any two steps, unless a test stops the clock.
  clockStepMs = 10
  writer = writerOf(1)
})

describe('an idle writer', () => {
  it('sends the rows that arrive in one iteration of the event loop as one chunk', async () => {
    const writes = [writeRows('a'), writeRows('b', 'c')]
    expect(queue.adds).toHaveLength(0)
    await turn()
    expect(queue.adds).toHaveLength(1)
    expect(addAt(0)).toMatchObject({
      chunkId: 'chunk-1',
      names: ['a', 'b', 'c'],
      chunk: { rows: 3, bytes: rowsOf('a').byteLength + rowsOf('b', 'c').byteLength },
    })
    addAt(0).confirm()
    await Promise.all(writes)
  })

  it('has copied the rows when write returns, even rows that do not fit its memory', async () => {
    const large = nameOf(2 * chunkLimits.bytesMax)
    const blocks = ['a', large, 'b'].map((name) => namedRows(name))
    const writes = blocks.map((block) => writer.write(ownedRows(1, block)))
    for (const block of blocks) block.fill('x')
    await vi.waitUntil(() => queue.adds.length === 1)
    expect(addAt(0).names).toEqual(['a', large])
    await confirmAll(writes)
    expect(addAt(1).names).toEqual(['b'])
  })

  it('does not resolve before the queue has acknowledged the chunk', async () => {
    let written = false
    const write = writeRows('a').then(() => (written = true))
    await turn()
    await turn()
    expect(written).toBe(false)
    addAt(0).confirm()
    await write
    expect(written).toBe(true)
  })
})

describe('a writer of very many rows', () => {
  beforeEach(async () => {
    clockStepMs = 0
    queue.holding = false
    await writeFor(100, 1.2 * chunkLimits.fastRowsPerS)
  })

  it('gathers for an interval, even if the queue replies faster', async () => {
    const writes = [writeRows('b')]
    await turn()
    writes.push(writeRows('c'))
    await turn()
    expect(queue.adds).toHaveLength(0)
    nowMs += chunkLimits.fastIntervalMs
    await Promise.all(writes)
    expect(addAt(0)).toMatchObject({ names: ['b', 'c'] })
  })

  it('does not wait for others when as many writes wait as ever do', async () => {
    const writes = ['b', 'c'].map((name) => writeRows(name))
    await turn()
    expect(queue.adds).toHaveLength(0)
    writes.push(writeRows('d'))
    await Promise.all(writes)
    expect(addAt(0)).toMatchObject({ names: ['b', 'c', 'd'] })
  })

  it('sends a full chunk without waiting', async () => {
    await writer.write(fullChunk)
    expect(queue.adds).toHaveLength(1)
  })
})

describe('a busy writer', () => {
  it('gathers writes while an add is in flight, and sends them as one chunk', async () => {
    const first = writeRows('a')
    await turn()
    const more = ['b', 'c', 'd'].map((name) => writeRows(name))
    for (let i = 0; i < 5; i += 1) await turn()
    expect(queue.adds).toHaveLength(1)
    addAt(0).confirm()
    await first
    await turn()
    expect(addAt(1).names).toEqual(['b', 'c', 'd'])
    addAt(1).confirm()
    await Promise.all(more)
    expect(queue.adds).toHaveLength(2)
  })

  it('sends full chunks without waiting, up to the limit of adds in flight', async () => {
    const writes: Promise<unknown>[] = []
    for (let i = 0; i < chunkLimits.addsInFlightMax + 2; i += 1) {
      writes.push(writer.write(fullChunk))
      await turn()
    }
    expect(queue.adds).toHaveLength(chunkLimits.addsInFlightMax)
    addAt(1).confirm()
    await writes[1]
    await turn()
    expect(queue.adds).toHaveLength(chunkLimits.addsInFlightMax + 1)
    await confirmAll(writes)
    expect(queue.names).toHaveLength(writes.length)
  })

  it.each([
    ['rows', fullChunk],
    ['bytes', rowsOf(nameOf(chunkLimits.bytesMax))],
  ])('closes a chunk that has reached the limit of %s', async (_what, rows) => {
    const writes = [writer.write(rows), writeRows('next')]
    await vi.waitUntil(() => queue.adds.length > 0)
    await confirmAll(writes)
    expect(addAt(1).names).toEqual(['next'])
  })
})

describe('a writer of several queues', () => {
  const QUEUES = 3
  beforeEach(() => {
    writer = writerOf(QUEUES)
  })

  it('sends after intervalMs if a queue does not reply', async () => {
    clockStepMs = 0
    const stuck = writeRows('stuck')
    await turn()
    const next = writeRows('next')
    await turn()
    nowMs += chunkLimits.intervalMs
    await vi.waitUntil(() => queue.adds.length === 2)
    expect(queue.names).toEqual(['stuck', 'next'])
    await confirmAll([stuck, next])
  })

  it('has one add in flight for each queue, and as many more for full chunks as a writer of one queue', async () => {
    const writes: Promise<unknown>[] = []
    for (let i = 0; i < QUEUES + 2; i += 1) {
      writes.push(writeRows(`${i}`))
      await turn()
    }
    expect(queue.adds).toHaveLength(QUEUES)
    for (let i = 0; i < chunkLimits.addsInFlightMax + 2; i += 1) {
      writes.push(writer.write(fullChunk))
      await turn()
    }
    expect(queue.adds).toHaveLength(QUEUES + chunkLimits.addsInFlightMax - 1)
    await confirmAll(writes)
  })
})

it('a queue that fails rejects the writes of the failed chunk and no others, and nothing is retried', async () => {
  const lost = [outcome(writeRows('a')), outcome(writeRows('b'))]
  await turn()
  const kept = outcome(writeRows('c'))
  addAt(0).fail(new QueueUnavailableError('no answer'))
  expect(await Promise.all(lost)).toEqual(['QueueUnavailableError', 'QueueUnavailableError'])
  await turn()
  addAt(1).confirm()
  expect(await kept).toBe('written')
  expect(queue.adds).toHaveLength(2)
})

describe('the deadline of a chunk', () => {
  beforeEach(() => {
    clockStepMs = 0
    nowMs = 1_000
  })

  it('starts with its first write', async () => {
    const writes = [writeRows('a')]
    nowMs = 1_500
    writes.push(writeRows('b'))
    await turn()
    expect(addAt(0).deadlineMs).toBe(1_000 + chunkLimits.addDeadlineMs)
    addAt(0).confirm()
    await Promise.all(writes)
  })

  it('fails the chunk without an add if it has passed', async () => {
    const first = writeRows('a')
    await turn()
    const late = [outcome(writeRows('b')), outcome(writeRows('c'))]
    nowMs += chunkLimits.addDeadlineMs
    addAt(0).confirm()
    await first
    expect(await Promise.all(late)).toEqual(['QueueUnavailableError', 'QueueUnavailableError'])
    expect(queue.adds).toHaveLength(1)
  })
})
