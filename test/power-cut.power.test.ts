// Needs root, a loop device, e2fsprogs and perl: `npm run test:power`.
import { type ClickHouseAccess, type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'
import { eventually } from '@sluice/harness'
import { drainQueue, isEmpty } from '@sluice/harness/drain'
import { postLogs } from '@sluice/harness/logs-request'
import { PowerDisk } from '@sluice/harness/power-disk'
import { type Installation, startInstallation } from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'

const DISK_SIZE = '600M'
const REQUESTS = 10
const ENTRIES_PER_REQUEST = 100

const deadLetter = {
  id: '01a1fb4d-5bd1-74f9-83e0-56d2211cd84d',
  project_id: 'demo',
  failed_at: '2026-11-20 00:00:00',
  code: 'TEST',
  reason: '',
  text: '',
}

async function count(access: ClickHouseAccess, query: string): Promise<number> {
  const client: ClickHouseClient = connectClickHouse(access, { requestTimeoutMs: 10_000, connectionsMax: 1 })
  try {
    const result = await client.query({ query: `SELECT toUInt32(${query}) AS n`, format: 'JSONEachRow' })
    return (await result.json<{ n: number }>())[0]?.n ?? -1
  } finally {
    await client.close()
  }
}

/** Rows stored, distinct rows stored, and dead letters. */
async function stored({ clickhouse }: Installation): Promise<readonly number[]> {
  return Promise.all([
    count(clickhouse, '(SELECT count() FROM logs)'),
    count(clickhouse, '(SELECT uniqExact(id) FROM logs)'),
    count(clickhouse, '(SELECT count() FROM dead_letters)'),
  ])
}

it('confirmed rows and dead letters are on the disk after a power cut', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-power-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const disk = await PowerDisk.mount(join(folder, 'disk.img'), join(folder, 'disk'), DISK_SIZE)
  onTestFinished(() => disk.destroy())
  const dataDir = join(folder, 'disk', 'data')
  const installation = await startInstallation({ dataDir })
  let stopped = false
  const stop = async (): Promise<void> => {
    if (!stopped) await installation.stop({ force: true })
    stopped = true
  }
  onTestFinished(stop)
  const { clickhouse, redisUrl, prefix } = installation
  const client = connectClickHouse(clickhouse, { requestTimeoutMs: 10_000, connectionsMax: 1 })
  // The kernel writes data to the disk after some seconds. The power is cut before that.
  for (let i = 0; i < REQUESTS; i += 1) {
    const logs = Array.from({ length: ENTRIES_PER_REQUEST }, (_, n) => ({
      level: 'info',
      message: `${i}/${n}`,
    }))
    expect((await postLogs(installation, { logs })).status).toBe(202)
  }
  await client.insert({ table: 'dead_letters', values: [deadLetter], format: 'JSONEachRow' })
  await client.close()
  const expected = [REQUESTS * ENTRIES_PER_REQUEST, REQUESTS * ENTRIES_PER_REQUEST, 1]
  await eventually(20_000, async () => expect(await stored(installation)).toEqual(expected))
  expect(await drainQueue(redisUrl, queueNames(prefix), 20_000)).toSatisfy(isEmpty)

  await disk.cutPower()
  await stop()
  await disk.restorePower()

  const restarted = await startInstallation({ dataDir })
  onTestFinished(() => restarted.stop({ force: true }))
  expect(await drainQueue(restarted.redisUrl, queueNames(restarted.prefix), 60_000)).toSatisfy(isEmpty)
  expect(await stored(restarted)).toEqual(expected)
}, 180_000)
