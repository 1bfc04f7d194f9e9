import { type FaultProxy, pause, seededRandom } from '@sluice/harness'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { isExactlyOnce } from '@sluice/harness/settle'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ChaosInstallation } from './chaos-installation.ts'

const LOST_ANSWERS = 8

let installation: ChaosInstallation

beforeAll(async () => {
  const workerEnvironment = { LOCK_DURATION_MS: '2000' }
  installation = await ChaosInstallation.start({ apis: 1, workers: 1, workerEnvironment })
})

afterAll(() => installation?.stop())

/** Cuts the connection of the next answer, before the answer is complete. */
async function loseAnAnswer(link: FaultProxy): Promise<void> {
  const { cuts } = link
  link.armCut({ direction: 'answer', afterBytes: 1 })
  while (link.cuts === cuts) await pause(1)
  link.disarmCut()
}

it('stores entries once when Redis added them but its answer was lost, and acknowledges them', async () => {
  const journal = new Journal('lost-answer')
  const { apiUrls, apiKey } = installation
  const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(3), entriesPerSecond: 200 })
  load.start()
  for (let lost = 0; lost < LOST_ANSWERS; lost += 1) {
    await pause(500)
    await loseAnAnswer(installation.link('api-1', 'redis'))
  }
  await pause(500)
  await load.stop()

  expect(await installation.settle(journal)).toSatisfy(isExactlyOnce)
  // A retry takes less than the two seconds that an answer may take. On a busy machine, a few retries may be too late.
  expect(journal.count('refused')).toBeLessThan(journal.size / 10)
  expect(journal.count('unknown')).toBe(0)
})
