import { type LogQuery, type LogReader, ReadLimitError } from '@sluice/clickhouse'
import { createLogger } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { endOf } from '../src/tail/position.ts'
import { Tails } from '../src/tail/tails.ts'
import { Viewer } from '../src/tail/viewer.ts'

const everything = {
  text: '',
  condition: { sql: 'true', parameters: {} },
  matches: () => true,
  position: endOf(0),
  check: () => Promise.resolve(),
}

/** A viewer of all entries, which reads nothing. */
function silent() {
  const events: string[] = []
  const sink = {
    bufferedBytes: 0,
    write: (text: string) => {
      events.push(text.slice(0, 100))
      sink.bufferedBytes += text.length
    },
    drained: () => Promise.resolve(),
    close: () => undefined,
  }
  return { ...everything, sink, events }
}

/** @param stream answers a query of a span, which is complete up to a time */
function openTails(completeMs: number, stream: (spanMs: number) => AsyncGenerator<unknown[]>): Tails {
  const reader = {
    stream: (_project: string, { parameters }: LogQuery) =>
      stream(Number(parameters?.['untilMs']) - Number(parameters?.['fromMs'])),
  } as Pick<LogReader, 'stream'>
  const completePoint = { until: () => Promise.resolve(completeMs) }
  return new Tails({ reader, completePoint, logger: createLogger('test', 'silent') })
}

/** An entry that was received so long after 1970. */
const rowOf = (receivedMs: number) => ({
  id: randomUUID(),
  received_at: new Date(receivedMs).toISOString(),
  message: 'x'.repeat(2_000),
  metadata_text: '{}',
})

it('tells what was left out before the entries after it: from their id on, nobody would know', () => {
  const { events, ...options } = silent()
  const viewer = new Viewer({ ...options, viewers: () => 1 })
  viewer.expect(1_000)
  for (let n = 1; n <= 1_002; n++) viewer.offer(endOf(n), () => `${n}`)
  viewer.flush(endOf(1_000))
  // The query fails, and another one goes on.
  viewer.expect(2_000)
  viewer.offer(endOf(1_500), () => '1500')
  viewer.flush(endOf(1_500))
  expect(events.map((text) => /event: \w+/.exec(text)?.[0])).toEqual([
    'event: skipped',
    'event: entries',
    'event: entries',
  ])
})

it('viewers that read nothing hold no more than a hundred megabytes together', async () => {
  const tails = openTails(1_000, async function* () {
    yield Array.from({ length: 1_000 }, (_, n) => rowOf(n + 1))
  })
  const viewers = Array.from({ length: 400 }, silent)
  for (const { events: _, ...options } of viewers) onTestFinished(tails.add('shop', options))
  const held = () => viewers.map(({ sink }) => sink.bufferedBytes)
  await expect.poll(() => Math.min(...held())).toBeGreaterThan(0)
  // 400 MB would be more than the container of a process has.
  expect(held().reduce((sum, bytes) => sum + bytes)).toBeLessThan(100 * 1024 * 1024)
})

it('entries that are too many for one query are read in shorter spans', async () => {
  const spansMs: number[] = []
  const tails = openTails(4_000, async function* (spanMs) {
    spansMs.push(spanMs)
    if (spanMs > 1_000) throw new ReadLimitError('memory', undefined)
    yield [rowOf(500)]
  })
  const { events, ...options } = silent()
  onTestFinished(tails.add('shop', options))
  await expect.poll(() => events.join('')).toContain('event: entries')
  expect(spansMs.slice(0, 3)).toEqual([4_000, 2_000, 1_000])
})
