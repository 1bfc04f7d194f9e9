import { expect, it } from 'vitest'
import { describeReport, hasPassed } from './report.ts'
import { runFuzz } from './run.ts'

/** Some ten seconds. `npm run fuzz` is for longer runs, with other seeds. */
const shortRun = { seed: 1, first: 0, end: 20_000 }

it('answers whatever is sent as documented, stays up, and stores what it has accepted', async () => {
  const report = await runFuzz({ ...shortRun, log: () => undefined })
  if (!hasPassed(report)) throw new Error(describeReport(report))
  const { ledger, sentinels } = report
  expect(ledger.requests).toBe(shortRun.end)
  // What is never answered was never tried.
  for (const answer of ['202 202', '400 invalid_json', '401 unauthorized', '415 unsupported_encoding']) {
    expect(ledger.answers.get(answer)).toBeGreaterThan(100)
  }
  expect(sentinels).toBeGreaterThan(100)
}, 180_000)
