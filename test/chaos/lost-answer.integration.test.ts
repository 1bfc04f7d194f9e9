import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isClean } from './audit.ts'
import { Cluster } from './cluster.ts'
import { isEmpty } from './drain.ts'
import { Journal } from './journal.ts'
import type { Link } from './link.ts'
import { Load } from './load.ts'
import { pause } from './pause.ts'
import { seededRandom } from './random.ts'
import { settle } from './settle.ts'

const LOST_ANSWERS = 8
const DRAIN_DEADLINE_MS = 30_000

let dataDir: string
let cluster: Cluster

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-lost-answer-'))
  const workerEnvironment = { LOCK_DURATION_MS: '2000' }
  cluster = await Cluster.start({ dataDir, apis: 1, workers: 1, workerEnvironment })
})

afterAll(async () => {
  await cluster?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

/** Ends the connection on which the next answer comes, before the answer is whole. */
async function loseAnAnswer(link: Link): Promise<void> {
  const { cuts } = link
  link.armCut({ direction: 'answer', afterBytes: 1 })
  while (link.cuts === cuts) await pause(1)
  link.disarmCut()
}

it('stores entries once whose add reached Redis but was not answered, and acknowledges them after all', async () => {
  const journal = new Journal('lost-answer')
  const { apiUrls, apiKey } = cluster
  const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(3), entriesPerSecond: 200 })
  load.start()
  for (let lost = 0; lost < LOST_ANSWERS; lost += 1) {
    await pause(500)
    await loseAnAnswer(cluster.link('api-1', 'redis'))
  }
  await pause(500)
  await load.stop()

  const { findings, queue } = await settle(cluster, journal, DRAIN_DEADLINE_MS)
  expect(findings).toSatisfy(isClean)
  expect(queue).toSatisfy(isEmpty)
  // A retry takes less than the two seconds that an answer may take; on a busy machine a few may not make it.
  expect(journal.count('refused')).toBeLessThan(journal.size / 10)
  expect(journal.count('unknown')).toBe(0)
}, 60_000)
