import { expect, it } from 'vitest'
import { Reports } from '../src/entry-sender.ts'

const setup = (): { reports: Reports; printed: string[]; clock: { ms: number } } => {
  const printed: string[] = []
  const clock = { ms: 0 }
  return {
    printed,
    clock,
    reports: new Reports(
      (text) => printed.push(text),
      () => clock.ms,
    ),
  }
}

it('prints the first loss of a kind at once, and gathers the next ones for ten seconds', () => {
  const { reports, printed, clock } = setup()
  reports.lost(1, 'dropped: full')
  reports.lost(2, 'rejected: /level')
  clock.ms = 9_999
  reports.lost(5, 'dropped: full')
  expect(printed).toEqual(['1 log entry was dropped: full', '2 log entries were rejected: /level'])
  clock.ms = 10_000
  reports.lost(6, 'dropped: full')
  expect(printed.slice(2)).toEqual(['11 log entries were dropped: full'])
})

it('prints what was gathered at the end', () => {
  const { reports, printed } = setup()
  reports.lost(1, 'dropped')
  reports.lost(2, 'dropped')
  reports.end()
  reports.end()
  expect(printed).toEqual(['1 log entry was dropped', '2 log entries were dropped'])
})

it('forgets reasons when there are many: the API may give a new one for each entry', () => {
  const { reports, printed } = setup()
  for (let i = 0; i < 1_000; i += 1) reports.lost(1, `reason ${i}`)
  expect(printed.length).toBeLessThanOrEqual(20)
  reports.end()
  expect(printed.at(-1)).toBe('980 log entries were lost for other reasons')
})
