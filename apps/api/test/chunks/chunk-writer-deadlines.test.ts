import { ownedRows } from '@sluice/row-scanner'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { chunkLimits, ChunkWriter } from '../../src/chunks/chunk-writer.ts'
import { FakeQueue, type PendingAdd } from '../support/fake-queue.ts'

let queue: FakeQueue
let writer: ChunkWriter

/** Resolves at the end of the event loop's turn. An idle writer sends then. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const addAt = (index: number): PendingAdd => {
  const add = queue.adds[index]
  if (add === undefined) throw new Error(`there were only ${queue.adds.length} adds`)
  return add
}
const write = (line: string): Promise<void> => writer.write(ownedRows(1, `${line}\n`))
const outcome = (promise: Promise<void>): Promise<string> =>
  promise.then(
    () => 'written',
    (error: Error) => error.name,
  )

beforeEach(() => {
  queue = new FakeQueue({ holding: true })
  let id = 0
  writer = new ChunkWriter(queue, () => `chunk-${(id += 1)}`)
})

describe('the deadline of a chunk', () => {
  it('starts with its first write', async () => {
    vi.spyOn(performance, 'now').mockReturnValue(1_000)
    const writes = [write('a')]
    vi.spyOn(performance, 'now').mockReturnValue(1_500)
    writes.push(write('b'))
    await turn()
    expect(addAt(0).deadlineMs).toBe(1_000 + chunkLimits.addDeadlineMs)
    addAt(0).confirm()
    await Promise.all(writes)
  })

  it('fails the chunk without an add if it has passed', async () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(1_000)
    const first = write('a')
    await turn()
    const late = [outcome(write('b')), outcome(write('c'))]
    now.mockReturnValue(1_000 + chunkLimits.addDeadlineMs)
    addAt(0).confirm()
    await first
    expect(await Promise.all(late)).toEqual(['QueueUnavailableError', 'QueueUnavailableError'])
    expect(queue.adds).toHaveLength(1)
    expect(writer.bytesWaiting).toBe(0)
  })

  it('allows an add shortly before it passes', async () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(1_000)
    const first = write('a')
    await turn()
    const late = write('b')
    now.mockReturnValue(1_000 + chunkLimits.addDeadlineMs - 1)
    addAt(0).confirm()
    await first
    await turn()
    addAt(1).confirm()
    await late
    expect(addAt(1).lines).toEqual(['b'])
  })
})
