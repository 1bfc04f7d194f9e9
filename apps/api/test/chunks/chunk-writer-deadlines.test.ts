import { beforeEach, describe, expect, it, vi } from 'vitest'
import { chunkLimits, ChunkWriter } from '../../src/chunks/chunk-writer.ts'
import { FakeQueue, type PendingAdd } from '../support/fake-queue.ts'

let queue: FakeQueue
let writer: ChunkWriter

/** The end of the event loop's turn, at which a writer that is idle sends. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const addAt = (index: number): PendingAdd => {
  const add = queue.adds[index]
  if (add === undefined) throw new Error(`there were only ${queue.adds.length} adds`)
  return add
}
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

describe('deadlines', () => {
  it('count from the first write of the chunk', async () => {
    vi.spyOn(performance, 'now').mockReturnValue(1_000)
    const writes = [writer.write(1, Buffer.from('a\n'))]
    vi.spyOn(performance, 'now').mockReturnValue(1_500)
    writes.push(writer.write(1, Buffer.from('b\n')))
    await turn()
    expect(addAt(0).deadlineMs).toBe(1_000 + chunkLimits.addDeadlineMs)
    addAt(0).confirm()
    await Promise.all(writes)
  })

  it('that have passed add nothing to the queue', async () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(1_000)
    const first = writer.write(1, Buffer.from('a\n'))
    await turn()
    const late = [outcome(writer.write(1, Buffer.from('b\n'))), outcome(writer.write(1, Buffer.from('c\n')))]
    now.mockReturnValue(1_000 + chunkLimits.addDeadlineMs)
    addAt(0).confirm()
    await first
    expect(await Promise.all(late)).toEqual(['QueueUnavailableError', 'QueueUnavailableError'])
    expect(queue.adds).toHaveLength(1)
    expect(writer.bytesWaiting).toBe(0)
  })

  it('that have not quite passed are tried', async () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(1_000)
    const first = writer.write(1, Buffer.from('a\n'))
    await turn()
    const late = writer.write(1, Buffer.from('b\n'))
    now.mockReturnValue(1_000 + chunkLimits.addDeadlineMs - 1)
    addAt(0).confirm()
    await first
    await turn()
    addAt(1).confirm()
    await late
    expect(addAt(1).lines).toEqual(['b'])
  })
})
