import { expect, it } from 'vitest'
import { planRun, runChaos, runSettings } from './run.ts'

const faultKinds = 'black-hole clock cut freeze kill outage reset silence terminate unplug'.split(' ')

const DECK_MS = 30_000
/** One deck. `npm run lab -- chaos` runs longer, with other seeds and with the faults that take long or need root. */
const shortRun = { seed: 1, minutes: DECK_MS / 60_000, deckMs: DECK_MS, hasPowerCuts: false }

it('loses and duplicates nothing while processes crash and freeze and connections break', async () => {
  const kinds = new Set(planRun(shortRun).map(({ kind }) => kind))
  expect([...kinds].toSorted()).toEqual(faultKinds)

  const { entriesPerSecond } = runSettings
  const { report, keptDataDir } = await runChaos({ ...shortRun, entriesPerSecond, log: () => undefined })
  if (!report.passed) throw new Error(`${report.text}\nthe data and logs are in ${keptDataDir}`)
  expect(report.kills).toBeGreaterThanOrEqual(5)
  expect(report.acknowledged).toBeGreaterThan(1_000)
}, 240_000)
