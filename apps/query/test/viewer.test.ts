import { expect, it } from 'vitest'
import { endOf } from '../src/tail/position.ts'
import { Viewer } from '../src/tail/viewer.ts'

function open(viewers = 1): { viewer: Viewer; events: string[] } {
  const events: string[] = []
  const viewer = new Viewer({
    sink: {
      write: (text) => void events.push(text),
      bufferedBytes: 0,
      drained: () => Promise.resolve(),
      close: () => undefined,
    },
    text: '',
    condition: { sql: 'true', parameters: {} },
    matches: () => true,
    position: endOf(0),
    check: () => Promise.resolve(),
    viewers: () => viewers,
  })
  return { viewer, events }
}

it('tells what was left out before the entries after it: from their id on, nobody would know', () => {
  const { viewer, events } = open()
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

it('has less memory when there are many', () => {
  const { viewer, events } = open(500)
  viewer.expect(1_000)
  for (let n = 1; n <= 100; n++) viewer.offer(endOf(n), () => 'x'.repeat(10_000))
  viewer.flush(endOf(1_000))
  // 500 MB would be more than the container of a process has.
  expect(events.at(-1)?.length).toBeLessThan(250_000)
})
