import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isClean } from './audit.ts'
import { Cluster } from './cluster.ts'
import { isEmpty } from './drain.ts'
import { Journal } from './journal.ts'
import { Load } from './load.ts'
import { pause } from './pause.ts'
import { seededRandom } from './random.ts'
import { settle } from './settle.ts'

/** What the apps are given, and what their end may take beside it. */
const SHUTDOWN_DEADLINE_MS = 3_000
const DRAIN_DEADLINE_MS = 30_000

let dataDir: string
let cluster: Cluster

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-shutdown-'))
  cluster = await Cluster.start({
    dataDir,
    apis: 2,
    workers: 2,
    workerEnvironment: { LOCK_DURATION_MS: '2000' },
  })
})

afterAll(async () => {
  await cluster?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

/** Ends a process by SIGTERM, and starts it again. @returns how long its end took, ms */
async function restart(name: string): Promise<number> {
  const victim = cluster.victim(name)
  const startedAtMs = performance.now()
  const ended = victim.process.exited.then(() => performance.now() - startedAtMs)
  await victim.terminate(0)
  return ended
}

describe('SIGTERM while entries arrive', () => {
  it('ends an API or a worker within its deadline, with nothing lost, doubled or answered by an error', async () => {
    const journal = new Journal('shutdown')
    const { apiUrls, apiKey } = cluster
    const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(2), entriesPerSecond: 300 })
    load.start()
    for (const name of ['api-1', 'worker-1', 'api-2', 'worker-2']) {
      await pause(1_000)
      expect(await restart(name)).toBeLessThan(SHUTDOWN_DEADLINE_MS)
    }
    // One of each at once: their partners carry on alone.
    await Promise.all(['api-1', 'worker-1'].map(restart))
    await pause(500)
    await load.stop()

    const { findings, queue } = await settle(cluster, journal, DRAIN_DEADLINE_MS)
    expect(findings).toSatisfy(isClean)
    expect(queue).toSatisfy(isEmpty)
    const ends = cluster.victims.flatMap(({ name, terminations }) =>
      terminations.map(({ code, signal }) => ({ name, code, signal })),
    )
    expect(ends).toHaveLength(6)
    for (const end of ends) expect(end).toEqual({ name: end.name, code: 0, signal: null })
    const statuses = [...journal.answers.keys()].filter((answer) => /^\d+$/.test(answer))
    expect(new Set([...statuses, '202', '400', '503'])).toEqual(new Set(['202', '400', '503']))
    expect(journal.count('acknowledged')).toBeGreaterThan(1_000)
  }, 90_000)
})
