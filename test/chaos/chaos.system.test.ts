import { expect, it } from 'vitest'
import { describeReport } from './report.ts'
import { planRun, runChaos, runSettings } from './run.ts'
import { scheduleLimits } from './schedule.ts'

const faultKinds = [
  'kill',
  'terminate',
  'freeze',
  'reset',
  'black-hole',
  'cut',
  'silence',
  'unplug',
  'outage',
  'clock',
]

/** One deck. `npm run chaos` runs longer, with other seeds and with the faults that take long or need root. */
const shortRun = { seed: 1, minutes: scheduleLimits.deckMs / 60_000, hasPowerCuts: false }

it('loses and duplicates nothing while processes crash and freeze and connections break', async () => {
  const kinds = new Set(planRun(shortRun).map(({ kind }) => kind))
  expect([...kinds].toSorted()).toEqual(faultKinds.toSorted())

  const { entriesPerSecond } = runSettings
  const { report, keptDataDir } = await runChaos({ ...shortRun, entriesPerSecond, log: () => undefined })
  if (!report.passed) throw new Error(`${describeReport(report)}\nthe data and logs are in ${keptDataDir}`)
  expect(report.kills['total']).toBeGreaterThanOrEqual(5)
  expect(report.entries.acknowledged).toBeGreaterThan(1_000)
}, 240_000)
