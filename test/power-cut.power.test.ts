// Needs root, a loop device, e2fsprogs and perl: `npm run test:power`.
import { command, select, withClickHouse } from '@sluice/harness/clickhouse'
import { drainQueue, isEmpty } from '@sluice/harness/drain'
import { postLogs } from '@sluice/harness/logs-request'
import { PowerDisk } from '@sluice/harness/power-disk'
import { type Installation, startInstallation } from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync } from 'node:fs'
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

/** Rows stored, distinct rows stored, and dead letters. */
async function stored({ clickhouse }: Installation): Promise<readonly number[]> {
  const counts = ['count() FROM logs', 'uniqExact(id) FROM logs', 'count() FROM dead_letters'].map(
    async (what) => (await select<{ n: number }>(clickhouse, `SELECT toUInt32((SELECT ${what})) AS n`))[0]?.n,
  )
  return (await Promise.all(counts)).map((count) => count ?? -1)
}

/** An installation on a disk whose power can be cut. */
interface PoweredInstallation {
  running: Installation
  readonly cutPower: () => Promise<void>
}

/** Everything is removed at the end of the test. */
async function start(): Promise<PoweredInstallation> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-power-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const disk = await PowerDisk.mount(join(folder, 'disk.img'), join(folder, 'disk'), DISK_SIZE)
  onTestFinished(() => disk.destroy())
  const dataDir = join(folder, 'disk', 'data')
  const powered: PoweredInstallation = {
    running: await startInstallation({ dataDir }),
    cutPower: async () => {
      await disk.cutPower()
      await powered.running.stop({ force: true })
      await disk.restorePower()
      powered.running = await startInstallation({ dataDir })
    },
  }
  onTestFinished(() => powered.running.stop({ force: true }))
  return powered
}

async function send({ running }: PoweredInstallation, requests: number): Promise<void> {
  for (let i = 0; i < requests; i += 1) {
    const logs = Array.from({ length: ENTRIES_PER_REQUEST }, () => ({ level: 'info', message: `${i}` }))
    expect((await postLogs(running, { logs })).status).toBe(202)
  }
}

/** Waits until the queue is empty. @returns the numbers of rows, distinct rows and dead letters */
async function drained({ running }: PoweredInstallation): Promise<readonly number[]> {
  expect(await drainQueue(running.redisUrl, queueNames(running.prefix), 60_000)).toSatisfy(isEmpty)
  return stored(running)
}

// The kernel writes data to the disk after some seconds. The power is cut before that.

it('confirmed rows and dead letters are on the disk after a power cut', async () => {
  const powered = await start()
  await send(powered, REQUESTS)
  await withClickHouse(powered.running.clickhouse, (client) =>
    client.insert({ table: 'dead_letters', values: [deadLetter], format: 'JSONEachRow' }),
  )
  const expected = [REQUESTS * ENTRIES_PER_REQUEST, REQUESTS * ENTRIES_PER_REQUEST, 1]
  expect(await drained(powered)).toEqual(expected)
  await powered.cutPower()
  expect(await drained(powered)).toEqual(expected)
}, 180_000)

it('a merged part is on the disk before ClickHouse may remove the original parts', async () => {
  const powered = await start()
  for (let part = 1; part <= 3; part += 1) {
    await send(powered, 1)
    expect(await drained(powered)).toEqual([part * ENTRIES_PER_REQUEST, part * ENTRIES_PER_REQUEST, 0])
  }
  const { clickhouse } = powered.running
  await command(clickhouse, 'OPTIMIZE TABLE logs FINAL')
  // ClickHouse removes them up to forty seconds later. By then the kernel may have written the merged part.
  const originals = "SELECT path FROM system.parts WHERE table = 'logs' AND NOT active"
  const paths = (await select<{ path: string }>(clickhouse, originals)).map(({ path }) => path)
  expect(paths).toHaveLength(3)
  for (const path of paths) rmSync(path, { recursive: true })
  const table = openSync(join(paths[0] ?? '', '..'), 'r')
  fsyncSync(table)
  closeSync(table)
  await powered.cutPower()
  expect(await drained(powered)).toEqual([3 * ENTRIES_PER_REQUEST, 3 * ENTRIES_PER_REQUEST, 0])
}, 180_000)
