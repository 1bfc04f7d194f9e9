import { postLogs } from '@sluice/harness'
import { startApi, Supervisor, withRegistry } from '@sluice/local'
import { randomUUID } from 'node:crypto'
import { expect, inject, it, onTestFinished } from 'vitest'

it('a process records the last use of keys when it stops', async () => {
  const access = { redisUrl: inject('services').redisUrl, prefix: `test-keys-${randomUUID()}` }
  const supervisor = new Supervisor({})
  onTestFinished(() => supervisor.stop())
  const { url, process } = await startApi(supervisor, access)
  await withRegistry(access, async ({ keys, projects }) => {
    await projects.create('used')
    const { key } = await keys.create('used')
    // The use is recorded by the clock of Redis, which a process knows to half of a round trip.
    const beforeMs = Date.now() - 1_000
    expect((await postLogs({ apiUrl: url, apiKey: key }, [])).status).toBe(202)
    expect((await keys.list('used'))[0]?.lastUsedAt).toBeUndefined()
    await process.stop()
    const [record] = await keys.list('used')
    expect(Date.parse(record?.lastUsedAt ?? '')).toBeGreaterThanOrEqual(beforeMs)
  })
})
