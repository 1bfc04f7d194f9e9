import { pause, seededRandom } from '@sluice/harness'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { isExactlyOnce } from '@sluice/harness/settle'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ChaosInstallation } from './chaos-installation.ts'

let installation: ChaosInstallation

beforeAll(async () => {
  installation = await ChaosInstallation.start({
    apis: 2,
    workers: 2,
    workerEnvironment: { LOCK_DURATION_MS: '2000' },
  })
})

afterAll(() => installation?.stop())

/** Stops a process by SIGTERM, and starts it again. */
const restart = (name: string): Promise<unknown> => installation.victim(name).terminate(0)

describe('SIGTERM while entries arrive', () => {
  it('stops an API or a worker within its deadline, and no entry is lost, duplicated or rejected', async () => {
    const journal = new Journal('shutdown')
    const { apiUrls, apiKey } = installation
    const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(2), entriesPerSecond: 300 })
    load.start()
    for (const name of ['api-1', 'worker-1', 'api-2', 'worker-2']) {
      await pause(1_000)
      await restart(name)
    }
    // An API and a worker at the same time. The other API and the other worker continue alone.
    await Promise.all(['api-1', 'worker-1'].map(restart))
    await pause(500)
    await load.stop()

    expect(await installation.settle(journal)).toSatisfy(isExactlyOnce)
    const exits = installation.victims.flatMap(({ name, terminations }) =>
      terminations.map(({ code, signal }) => ({ name, code, signal })),
    )
    expect(installation.victims.flatMap(({ unexpectedExits }) => unexpectedExits)).toEqual([])
    expect(exits).toHaveLength(6)
    // A process that does not stop within its deadline exits with 1.
    for (const exit of exits) expect(exit).toEqual({ name: exit.name, code: 0, signal: null })
    const statuses = [...journal.answers.keys()].filter((answer) => /^\d+$/.test(answer))
    expect(new Set([...statuses, '202', '400', '503'])).toEqual(new Set(['202', '400', '503']))
    expect(journal.count('acknowledged')).toBeGreaterThan(1_000)
  }, 90_000)
})
