import { expect, it } from 'vitest'
import { describeReport, hasPassed } from './report.ts'
import { runFuzz } from './run.ts'

/** About ten seconds. `npm run lab -- fuzz` runs longer, with other seeds. */
const shortRun = { seed: 1, first: 0, end: 8_000 }

it('responds to every request as documented, keeps running, and stores what it has accepted', async () => {
  const report = await runFuzz({ ...shortRun, log: () => undefined })
  if (!hasPassed(report)) throw new Error(describeReport(report))
  const { ledger, canaries } = report
  expect(ledger.requests).toBe(shortRun.end)
  // Proves that the fuzzer reaches these paths.
  for (const answer of ['202 202', '400 invalid_json', '401 unauthorized', '415 unsupported_encoding']) {
    expect(ledger.answers.get(answer)).toBeGreaterThan(100)
  }
  expect(canaries).toBeGreaterThan(100)
}, 180_000)
