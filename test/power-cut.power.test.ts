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
class PoweredInstallation {
  readonly #dataDir: string
  readonly #disk: PowerDisk
  running: Installation

  private constructor(dataDir: string, disk: PowerDisk, running: Installation) {
    this.#dataDir = dataDir
    this.#disk = disk
    this.running = running
  }

  /** Everything is removed at the end of the test. */
  static async start(): Promise<PoweredInstallation> {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-power-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const disk = await PowerDisk.mount(join(folder, 'disk.img'), join(folder, 'disk'), DISK_SIZE)
    onTestFinished(() => disk.destroy())
    const dataDir = join(folder, 'disk', 'data')
    const powered = new PoweredInstallation(dataDir, disk, await startInstallation({ dataDir }))
    onTestFinished(() => powered.running.stop({ force: true }))
    return powered
  }

  async cutPower(): Promise<void> {
    await this.#disk.cutPower()
    await this.running.stop({ force: true })
    await this.#disk.restorePower()
    this.running = await startInstallation({ dataDir: this.#dataDir })
  }

  async send(requests: number): Promise<void> {
    for (let i = 0; i < requests; i += 1) {
      const logs = Array.from({ length: ENTRIES_PER_REQUEST }, (_, n) => ({
        level: 'info',
        message: `${i}/${n}`,
      }))
      const { status } = await postLogs(this.running, { logs })
      if (status !== 202) throw new Error(`the status is ${status}`)
    }
  }

  /** Waits until the queue is empty. @returns the numbers of rows, distinct rows and dead letters */
  async drained(): Promise<readonly number[]> {
    const { redisUrl, prefix } = this.running
    const queue = await drainQueue(redisUrl, queueNames(prefix), 60_000)
    if (!isEmpty(queue)) throw new Error('the queue is not empty')
    return stored(this.running)
  }
}

// The kernel writes data to the disk after some seconds. The power is cut before that.

it('confirmed rows and dead letters are on the disk after a power cut', async () => {
  const powered = await PoweredInstallation.start()
  await powered.send(REQUESTS)
  await withClickHouse(powered.running.clickhouse, (client) =>
    client.insert({ table: 'dead_letters', values: [deadLetter], format: 'JSONEachRow' }),
  )
  const expected = [REQUESTS * ENTRIES_PER_REQUEST, REQUESTS * ENTRIES_PER_REQUEST, 1]
  expect(await powered.drained()).toEqual(expected)
  await powered.cutPower()
  expect(await powered.drained()).toEqual(expected)
}, 180_000)

it('a merged part is on the disk before ClickHouse may remove the original parts', async () => {
  const powered = await PoweredInstallation.start()
  for (let part = 1; part <= 3; part += 1) {
    await powered.send(1)
    expect(await powered.drained()).toEqual([part * ENTRIES_PER_REQUEST, part * ENTRIES_PER_REQUEST, 0])
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
  expect(await powered.drained()).toEqual([3 * ENTRIES_PER_REQUEST, 3 * ENTRIES_PER_REQUEST, 0])
}, 180_000)
