// Needs root, loop devices and e2fsprogs: `npm run test:power`.
import { type ClickHouseAccess, type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'
import { eventually } from '@sluice/harness'
import { drainQueue, isEmpty } from '@sluice/harness/drain'
import { postLogs } from '@sluice/harness/logs-request'
import { type Installation, startInstallation } from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
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

/** A separate disk, whose content can be copied as a power cut leaves it: without the data that only the kernel has. */
class Disk {
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-disk-'))
  readonly #mounted: string[] = []

  constructor() {
    this.#run('truncate', '-s', DISK_SIZE, this.#image('live'))
    this.#run('mkfs.ext4', '-q', this.#image('live'))
  }

  /** @returns the folder where the image is mounted */
  mount(image: 'live' | 'cut'): string {
    const folder = join(this.#folder, `${image}-mount`)
    mkdirSync(folder)
    this.#run('mount', '-o', 'loop', this.#image(image), folder)
    this.#mounted.push(folder)
    return folder
  }

  /** Copies the image without asking the kernel to write first. */
  cutPower(): void {
    this.#run('cp', '--sparse=always', this.#image('live'), this.#image('cut'))
  }

  destroy(): void {
    for (const folder of this.#mounted) this.#run('umount', '--lazy', folder)
    rmSync(this.#folder, { recursive: true })
  }

  #image(name: string): string {
    return join(this.#folder, `${name}.img`)
  }

  #run(program: string, ...args: readonly string[]): void {
    execFileSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  }
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
  const disk = new Disk()
  onTestFinished(() => disk.destroy())
  const installation = await startInstallation({ dataDir: join(disk.mount('live'), 'data') })
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

  disk.cutPower()
  await stop()

  const restarted = await startInstallation({ dataDir: join(disk.mount('cut'), 'data') })
  onTestFinished(() => restarted.stop({ force: true }))
  expect(await drainQueue(restarted.redisUrl, queueNames(restarted.prefix), 60_000)).toSatisfy(isEmpty)
  expect(await stored(restarted)).toEqual(expected)
}, 180_000)
