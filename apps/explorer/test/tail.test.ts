import { expect, it } from 'vitest'
import type { Problem } from '../src/api.ts'
import { follow } from '../src/tail.ts'

const eventOf = (id: number): string =>
  `id: ${id}\nevent: entries\ndata: {"entries":[{"id":"${id}","message":"ü"}]}\n\n`

function streamOf(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text)
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at < bytes.length) controller.enqueue(bytes.slice(at, (at += size)))
      else controller.close()
    },
  })
}

it.each([1, 2, 3, 7, 1_000])(
  'reads events in pieces of %d bytes, and continues after the last whole one',
  async (size) => {
    const connections = [
      `: here\n\n${eventOf(1)}${eventOf(2).slice(0, -9)}`,
      `${eventOf(2)}event: skipped\ndata: {"count":5}\n\n${eventOf(3)}`,
    ]
    const ended = new AbortController()
    const asked: unknown[] = []
    const received: unknown[] = []
    const problems: (string | undefined)[] = []
    await follow(
      {
        tail: async (_parameters, lastId) => {
          asked.push(lastId)
          return streamOf(connections.shift() ?? '', size)
        },
      },
      {},
      ended.signal,
      ({ id, entries, count }) => {
        if (entries !== undefined || count !== undefined) received.push(entries?.[0]?.message ?? count, id)
        if (id === '3') ended.abort()
      },
      (problem: Problem | undefined) => problems.push(problem?.message),
    )
    expect(asked).toEqual([undefined, '1'])
    expect(received).toEqual(['ü', '1', 'ü', '2', 5, undefined, 'ü', '3'])
    expect(problems).toEqual([undefined, 'The server closed the connection', undefined])
  },
)
