import { setImmediate as turn } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { QueueUnavailableError } from '../../src/chunks/chunk-queue.ts'
import { chunkLimits } from '../../src/chunks/chunk-writer.ts'
import { OverloadedError } from '../../src/overload/overloaded-error.ts'
import {
  idempotentLimits,
  IdempotentWriter,
  type RecordedWrite,
} from '../../src/idempotency/idempotent-writer.ts'
import { FakeQueue, type PendingAdd } from '../support/fake-queue.ts'

let queue: FakeQueue
let writer: IdempotentWriter

beforeEach(() => {
  queue = new FakeQueue({ holding: true })
  writer = new IdempotentWriter([queue], randomUUID, 60_000)
})

const writeOf = (name: string, text = `${name}\n`, rows = 1): RecordedWrite => ({
  shard: 0,
  name,
  record: randomUUID(),
  rows,
  text: Buffer.from(text),
})
const nthAdd = (index: number): Promise<PendingAdd> =>
  vi.waitUntil(() => queue.adds[index], { interval: 1, timeout: 5_000 })
/** What became of a write: `new`, `known`, or the error's name. */
const fate = async (write: RecordedWrite): Promise<string> => {
  try {
    return (await writer.write(write)) === write.record ? 'new' : 'known'
  } catch (error) {
    return error instanceof Error ? error.name : 'strange'
  }
}

describe('writes', () => {
  it('that arrive together are one chunk', async () => {
    const fates = ['a', 'b', 'c'].map((name) => fate(writeOf(name)))
    expect((await nthAdd(0)).lines).toEqual(['a', 'b', 'c'])
    queue.adds[0]?.confirm()
    expect(await Promise.all(fates)).toEqual(['new', 'new', 'new'])
  })

  it('gather while a commit is under way', async () => {
    const fates = [fate(writeOf('a'))]
    const first = await nthAdd(0)
    for (const name of ['b', 'c']) fates.push(fate(writeOf(name)))
    await turn()
    expect(queue.adds).toHaveLength(1)
    first.confirm()
    expect((await nthAdd(1)).lines).toEqual(['b', 'c'])
    queue.adds[1]?.confirm()
    expect(await Promise.all(fates)).toEqual(['new', 'new', 'new'])
  })

  it('to one shard wait for no other', async () => {
    const other = new FakeQueue({ holding: false })
    writer = new IdempotentWriter([queue, other], randomUUID, 60_000)
    const held = fate(writeOf('a'))
    expect(await fate({ ...writeOf('b'), shard: 1 })).toBe('new')
    expect(other.lines).toEqual(['b'])
    const drained = writer.drain()
    ;(await nthAdd(0)).confirm()
    expect(await held).toBe('new')
    await drained
    expect(queue.lines).toEqual(['a'])
  })

  it('of a name that is under way wait for it, gathered or committing', async () => {
    const fates = [fate(writeOf('a')), fate(writeOf('a'))]
    const first = await nthAdd(0)
    fates.push(fate(writeOf('a')))
    await turn()
    first.confirm()
    expect(await Promise.all(fates)).toEqual(['new', 'known', 'known'])
    expect(queue.lines).toEqual(['a'])
  })

  it('that are known drop out, and the others are committed without them', async () => {
    queue.holding = false
    expect(await fate(writeOf('b'))).toBe('new')
    expect(await Promise.all(['a', 'b', 'c'].map((name) => fate(writeOf(name))))).toEqual([
      'new',
      'known',
      'new',
    ])
    expect(queue.adds.map(({ lines }) => lines)).toEqual([['b'], ['a', 'c']])
  })

  it('have another chunk id at each attempt', async () => {
    queue.holding = false
    const asked = vi.spyOn(queue, 'addRecorded')
    await writer.write(writeOf('b'))
    await Promise.all(['a', 'b'].map((name) => writer.write(writeOf(name))))
    expect(asked).toHaveBeenCalledTimes(3)
    expect(new Set(asked.mock.calls.map(([chunkId]) => chunkId)).size).toBe(3)
  })

  it('without rows make no chunk', async () => {
    queue.holding = false
    expect(await fate(writeOf('a', '', 0))).toBe('new')
    expect(await fate(writeOf('a', '', 0))).toBe('known')
    expect(queue.adds).toEqual([])
  })
})

describe('a commit that fails', () => {
  it('rejects its writes and those that wait for them, and no others', async () => {
    const lost = [fate(writeOf('a')), fate(writeOf('a'))]
    const first = await nthAdd(0)
    const kept = fate(writeOf('b'))
    first.fail(new QueueUnavailableError('no answer'))
    expect(await Promise.all(lost)).toEqual(['QueueUnavailableError', 'QueueUnavailableError'])
    ;(await nthAdd(1)).confirm()
    expect(await kept).toBe('new')
  })

  it('leaves what it had settled before', async () => {
    queue.holding = false
    await writer.write(writeOf('a'))
    queue.holding = true
    const fates = ['a', 'b'].map((name) => fate(writeOf(name)))
    ;(await nthAdd(1)).fail(new QueueUnavailableError('no answer'))
    expect(await Promise.all(fates)).toEqual(['known', 'QueueUnavailableError'])
  })

  it('leaves its names free', async () => {
    const lost = fate(writeOf('a'))
    ;(await nthAdd(0)).fail(new QueueUnavailableError('no answer'))
    await lost
    const again = fate(writeOf('a'))
    ;(await nthAdd(1)).confirm()
    expect(await again).toBe('new')
  })
})

describe('a commit', () => {
  it('has at most so many records', async () => {
    queue.holding = false
    const count = idempotentLimits.recordsPerCommitMax + 1
    await Promise.all(Array.from({ length: count }, (_, i) => writer.write(writeOf(`${i}`))))
    expect(queue.adds.map(({ chunk }) => chunk.rows)).toEqual([count - 1, 1])
  })

  it('has at most as many rows as a chunk', async () => {
    queue.holding = false
    const { rowsMax } = chunkLimits
    await Promise.all(
      [rowsMax - 1, 1, 1].map((rows, i) => writer.write(writeOf(`${i}`, 'x\n'.repeat(rows), rows))),
    )
    expect(queue.adds.map(({ chunk }) => chunk.rows)).toEqual([rowsMax, 1])
  })

  it('has at most as much text as a chunk, unless one request has more', async () => {
    queue.holding = false
    const big = `${'x'.repeat(chunkLimits.bytesMax)}\n`
    await Promise.all([writer.write(writeOf('a', big)), writer.write(writeOf('b'))])
    expect(queue.adds.map(({ chunk }) => chunk.rows)).toEqual([1, 1])
  })

  it('is given the deadline of the first of its writes', async () => {
    const startedMs = performance.now()
    const written = fate(writeOf('a'))
    const { deadlineMs, confirm } = await nthAdd(0)
    expect(deadlineMs).toBeGreaterThanOrEqual(startedMs + chunkLimits.addDeadlineMs)
    expect(deadlineMs).toBeLessThanOrEqual(performance.now() + chunkLimits.addDeadlineMs)
    confirm()
    await written
  })
})

describe('a full writer', () => {
  it('refuses what is one byte too much, at once, and takes it when there is room', async () => {
    const { bytesWaitingMax } = idempotentLimits
    const first = fate(writeOf('a', `${'x'.repeat(bytesWaitingMax - 1)}\n`))
    expect(await fate(writeOf('b', '\n'))).toBe('OverloadedError')
    ;(await nthAdd(0)).confirm()
    expect(await first).toBe('new')
    queue.holding = false
    expect(await fate(writeOf('b', '\n'))).toBe('new')
  })

  it('refuses what is one record too many', async () => {
    const count = idempotentLimits.recordsWaitingMax
    const fates = Array.from({ length: count }, (_, i) => fate(writeOf(`${i}`)))
    await expect(writer.write(writeOf('one more'))).rejects.toThrow(OverloadedError)
    queue.holding = false
    ;(await nthAdd(0)).confirm()
    expect(new Set(await Promise.all(fates))).toEqual(new Set(['new']))
  })
})

describe('drain', () => {
  it('resolves at once when nothing waits', async () => {
    await writer.drain()
    expect(queue.adds).toEqual([])
  })

  it('resolves when all that was written is settled', async () => {
    const fates = [fate(writeOf('a'))]
    const first = await nthAdd(0)
    fates.push(fate(writeOf('b')))
    let isDrained = false
    const drained = writer.drain().then(() => (isDrained = true))
    first.confirm()
    const second = await nthAdd(1)
    expect(isDrained).toBe(false)
    second.fail(new QueueUnavailableError('no answer'))
    await drained
    expect(await Promise.all(fates)).toEqual(['new', 'QueueUnavailableError'])
  })
})
