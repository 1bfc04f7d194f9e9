import { redisNames } from '@sluice/schema'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compare, isClean, readStored } from '../chaos/audit.ts'
import { awaitInserts, drainQueue, isEmpty } from '../chaos/drain.ts'
import { Journal } from '../chaos/journal.ts'
import { Load } from '../chaos/load.ts'
import { pause } from '../chaos/pause.ts'
import { seededRandom } from '../chaos/random.ts'
import { PrivateNetwork } from './private-network.ts'
import { buildImage } from './sluice-images.ts'

const LOCK_DURATION_MS = 2_000
/** A lock, and two checks of the queue for chunks whose lock has run out; the rest is headroom for a busy machine. */
const DRAIN_DEADLINE_MS = 90_000
/** An insert whose sender is gone still ends within ClickHouse's own patience with a silent connection. */
const INSERTS_DEADLINE_MS = 60_000
const DOWN_MS = 1_500

let network: PrivateNetwork

beforeAll(async () => {
  // One after the other: they share most of their layers.
  for (const target of ['api', 'worker', 'cli'] as const) await buildImage(target)
  network = await PrivateNetwork.start({
    apis: 2,
    workers: 2,
    workerEnvironment: { LOCK_DURATION_MS: String(LOCK_DURATION_MS) },
  })
})

afterAll(() => network?.stop())

describe.each(['api-1', 'worker-1'])('the image of %s', (name) => {
  it('has what production needs, and no more', async () => {
    const ownFiles = ['find', '/sluice', '-name', 'node_modules', '-prune', '-o', '-type', 'f', '-print']
    const files = (await network.exec(name, ownFiles)).split('\n')
    expect(files).toContain(`/sluice/apps/${name.slice(0, -2)}/src/main.ts`)
    expect(files.filter((file) => /\.test\.|\.env|\/(test|bench|local)\//.test(file))).toEqual([])
    const packages = (await network.exec(name, ['ls', 'node_modules/.pnpm'])).split('\n')
    const development = /^(chdb|@chdb|node|typescript|vitest|oxlint|testcontainers)[@+]/
    expect(packages.filter((each) => development.test(each))).toEqual([])
    expect(packages.length).toBeGreaterThan(20)
  })

  it('runs as process 1, without root, on a file system that it cannot write to', async () => {
    expect(await network.exec(name, ['id', '-u'])).toBe('1000')
    expect(await network.exec(name, ['cat', '/proc/1/cmdline'])).toMatch(
      /^node\0(?:--[\w=-]+\0)*apps\/\w+\/src\/main\.ts\0$/,
    )
    await expect(network.exec(name, ['touch', '/sluice/written'])).rejects.toThrow('Read-only file system')
  })
})

async function restartKilled(name: string): Promise<void> {
  await network.kill(name)
  await pause(DOWN_MS)
  await network.revive(name)
}

describe('entries sent to containers', () => {
  it('are stored once each while containers are killed, stopped and cut off', async () => {
    const journal = new Journal('images')
    const { apiUrls, apiKey, redisUrl, clickhouse } = network
    const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(4), entriesPerSecond: 200 })
    load.start()
    await pause(1_000)
    await restartKilled('worker-1')
    await restartKilled('api-1')
    expect(await network.terminate('worker-2')).toBe(0)
    await network.revive('worker-2')
    expect(await network.terminate('api-2')).toBe(0)
    await network.revive('api-2')
    await network.cutOff('worker-1')
    await pause(2 * LOCK_DURATION_MS)
    await network.reconnect('worker-1')
    await restartKilled('redis')
    await pause(DOWN_MS)
    await restartKilled('clickhouse')
    await pause(DOWN_MS)
    await load.stop()

    const queue = await drainQueue(redisUrl, redisNames('sluice'), DRAIN_DEADLINE_MS)
    expect(queue).toSatisfy(isEmpty)
    const names = ['api-1', 'api-2', 'worker-1', 'worker-2']
    expect(await Promise.all(names.map((name) => network.terminate(name)))).toEqual([0, 0, 0, 0])
    await awaitInserts(clickhouse, INSERTS_DEADLINE_MS)
    const { findings } = compare(journal, await readStored(clickhouse, journal.label))
    expect(findings).toSatisfy(isClean)
    expect(journal.count('acknowledged')).toBeGreaterThan(1_000)
  }, 300_000)
})
