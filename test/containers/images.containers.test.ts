import { pause, seededRandom } from '@sluice/harness'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { isExactlyOnce, settle } from '@sluice/harness/settle'
import { queueNames } from '@sluice/queue'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildImage, ContainerInstallation } from './container-installation.ts'

const LOCK_DURATION_MS = 2_000
/** A lock, and two checks of the queue for expired locks. The rest is headroom for a busy machine. */
const DRAIN_DEADLINE_MS = 90_000
const DOWN_MS = 1_500

let installation: ContainerInstallation

beforeAll(async () => {
  // Sequentially: the images share most of their layers.
  for (const target of ['api', 'query', 'worker', 'cli'] as const) await buildImage(target)
  installation = await ContainerInstallation.start({
    apis: 2,
    workers: 2,
    workerEnvironment: { LOCK_DURATION_MS: String(LOCK_DURATION_MS) },
  })
})

afterAll(() => installation?.stop())

describe.each(['api-1', 'query-1', 'worker-1'])('the image of %s', (name) => {
  it('contains what production needs, and nothing else', async () => {
    const ownFiles = ['find', '/sluice', '-name', 'node_modules', '-prune', '-o', '-type', 'f', '-print']
    const files = (await installation.exec(name, ownFiles)).split('\n')
    expect(files).toContain(`/sluice/apps/${name.slice(0, -2)}/src/main.ts`)
    expect(files.filter((file) => /\.test\.|\.env|\/(test|bench|local)\//.test(file))).toEqual([])
    const packages = (await installation.exec(name, ['ls', 'node_modules/.pnpm'])).split('\n')
    const development = /^(chdb|@chdb|node|typescript|vitest|oxlint|testcontainers)[@+]/
    expect(packages.filter((each) => development.test(each))).toEqual([])
    expect(packages.length).toBeGreaterThan(20)
  })

  it('runs as process 1, without root, on a read-only file system', async () => {
    expect(await installation.exec(name, ['id', '-u'])).toBe('1000')
    expect(await installation.exec(name, ['cat', '/proc/1/cmdline'])).toMatch(
      /^node\0(?:--[\w=-]+\0)*apps\/\w+\/src\/main\.ts\0$/,
    )
    await expect(installation.exec(name, ['touch', '/sluice/written'])).rejects.toThrow(
      'Read-only file system',
    )
  })
})

it('the image of the query process serves the explorer, and entries with a user that can only read', async () => {
  const { readKey } = installation
  const script = `const get = async (path) => {
    const response = await fetch('http://127.0.0.1:3001' + path, { headers: { authorization: 'Bearer ${readKey}' } })
    console.log(response.status, await response.text())
  }
  await get('/')
  await get('/v1/query/logs')`
  const output = await installation.exec('query-1', ['node', '--input-type=module', '--eval', script])
  expect(output).toMatch(/^200 <!doctype html>/)
  expect(output).toMatch(/^200 \{"entries":\[\]/m)
})

async function restartKilled(name: string): Promise<void> {
  await installation.kill(name)
  await pause(DOWN_MS)
  await installation.revive(name)
}

describe('entries sent to containers', () => {
  it('are stored once each while containers are killed and stopped', async () => {
    const journal = new Journal('images')
    const { apiUrls, apiKey, redisUrl, clickhouse } = installation
    const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(4), entriesPerSecond: 200 })
    load.start()
    await pause(1_000)
    await restartKilled('worker-1')
    await restartKilled('api-1')
    expect(await installation.terminate('worker-2')).toBe(0)
    await installation.revive('worker-2')
    expect(await installation.terminate('api-2')).toBe(0)
    await installation.revive('api-2')
    await restartKilled('redis')
    await pause(DOWN_MS)
    await restartKilled('clickhouse')
    await pause(DOWN_MS)
    await load.stop()

    const names = ['api-1', 'api-2', 'worker-1', 'worker-2']
    const stores = { redisUrl, shards: [queueNames('sluice')], clickhouse }
    const settlement = await settle(stores, journal, {
      drainDeadlineMs: DRAIN_DEADLINE_MS,
      drained: async () =>
        expect(await Promise.all(names.map((name) => installation.terminate(name)))).toEqual([0, 0, 0, 0]),
    })
    expect(settlement).toSatisfy(isExactlyOnce)
    expect(journal.count('acknowledged')).toBeGreaterThan(1_000)
  }, 300_000)
})
