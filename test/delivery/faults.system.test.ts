import { eventually, FaultProxy, pause } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'
import type { Fleet } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { expect, it, onTestFinished, vi } from 'vitest'
import { expectAllStored, expectQueued, readiness, report, shorterWaits, startFleet } from './support.ts'

vi.setConfig({ testTimeout: 180_000 })

async function startWorkers(fleet: Fleet, count: number, clickhouseUrl?: string): Promise<void> {
  for (let worker = 0; worker < count; worker += 1) await fleet.startWorker({ clickhouseUrl })
}

/** @returns reports the time since the call */
function stopwatch(what: string): (event: string) => number {
  const startedAtMs = performance.now()
  return (event) => {
    const tookMs = performance.now() - startedAtMs
    report(`${event} ${Math.round(tookMs)} ms after ${what}`)
    return tookMs
  }
}

it('after an outage of ClickHouse in which all workers gave up, everything is stored and all workers are ready within seconds', async () => {
  /** A probe of the workers, which have given up, and the batches of the backlog. */
  const backWithinMs = 20_000
  const fleet = await startFleet({ environment: shorterWaits })
  const proxy = await FaultProxy.open(fleet.gate.url)
  onTestFinished(() => proxy.down())
  await startWorkers(fleet, 2, proxy.url)
  const journal = new Journal('outage')
  const feeding = fleet.feed(journal, { chunksPerS: 20, rowsPerChunk: 3, durationMs: 11_000 })
  await eventually(async () => expect(fleet.gate.acknowledged.length).toBeGreaterThan(0))
  await proxy.down()
  const expectAll = (pattern: RegExp): Promise<void> =>
    eventually(async () => {
      for (const page of await Promise.all(fleet.workers.map(readiness))) expect(page).toMatch(pattern)
    })
  await expectAll(/^503 .*its chunks are returned/)
  await feeding
  await proxy.up()
  const since = stopwatch('the outage')
  await eventually(() => expectQueued(fleet, 0, 0))
  since(`${journal.size} entries stored`)
  await expectAll(/^200 /)
  expect(since('ready')).toBeLessThan(backWithinMs)
  await expectAllStored(fleet, journal)
})

it('the batches of a killed worker are recovered once each, and their records are released', async () => {
  const chunksPerBatch = 300
  /** How long the records of a released batch are kept. */
  const releasedTtlMs = 300_000
  const fleet = await startFleet({ environment: { LOCK_DURATION_MS: '2000', BATCH_WAIT_MS: '500' } })
  // The first worker has the turn, and keeps it while it is not busy. It claims a batch when it has all of its rows, however long that takes.
  const environment = { BATCH_WAIT_MS: '60000', BATCH_ROWS_MAX: String(2 * chunksPerBatch) }
  const victim = await fleet.startWorker({ environment })
  await startWorkers(fleet, 5)
  const [names] = fleet.names
  const recordsOf = (key = ''): Promise<string[]> => fleet.redis.keys(key)

  const journal = new Journal('dead-worker')
  // Long enough to kill the worker while ClickHouse has not got its inserts.
  fleet.gate.insertDelayMs = 10_000
  for (const claimed of [1, 2]) {
    await fleet.add(journal, chunksPerBatch, 2)
    await eventually(async () => expect(await recordsOf(names?.batchKey('*'))).toHaveLength(claimed))
  }
  await eventually(() => expectQueued(fleet, 0, 2 * chunksPerBatch))
  await victim.process.stop({ signal: 'SIGKILL' })
  const since = stopwatch('the kill')
  fleet.gate.insertDelayMs = 0
  // Keeps the others busy. A busy worker loses the turn, so several of them fetch chunks of the two batches.
  await fleet.feed(journal, { chunksPerS: 100, rowsPerChunk: 1, durationMs: 8_000 })
  await eventually(() => expectQueued(fleet, 0, 0))
  since('recovered')
  // Another worker that holds a chunk of the batch would report it now.
  await pause(1_000)
  const recovered = fleet.logged('recovering a batch').map(({ batchId }) => batchId)
  expect([recovered.length, new Set(recovered).size]).toEqual([2, 2])
  const records = [...(await recordsOf(names?.chunkKey('*'))), ...(await recordsOf(names?.batchKey('*')))]
  expect(records.length).toBeGreaterThan(2 * chunksPerBatch + 2)
  for (const ttl of await Promise.all(records.map((key) => fleet.redis.pttl(key))))
    expect(ttl).toSatisfy((ms: number) => ms >= 0 && ms <= releasedTtlMs)
  await expectAllStored(fleet, journal)
})

it('while Redis is frozen for longer than the locks of two workers with batches in flight, nothing is lost or doubled', async () => {
  const lockMs = 1_000
  const fleet = await startFleet({
    environment: { LOCK_DURATION_MS: String(lockMs), BATCH_WAIT_MS: '200', BATCH_ROWS_MAX: '200' },
  })
  await startWorkers(fleet, 2)
  const journal = new Journal('frozen-redis')
  const { redis } = fleet.services.processes
  // Longer than it takes to freeze Redis while the inserts are in flight.
  fleet.gate.insertDelayMs = 1_500
  // More than one worker can insert, so that both are busy.
  const feeding = fleet.feed(journal, { chunksPerS: 200, rowsPerChunk: 2, durationMs: 12_000 })
  for (let freeze = 0; freeze < 2; freeze += 1) {
    // Both slots of both workers.
    await eventually(async () => expect(fleet.gate.delayedInserts).toBe(4))
    redis.kill('SIGSTOP')
    await pause(3 * lockMs)
    redis.kill('SIGCONT')
  }
  const since = stopwatch('the last freeze')
  await feeding
  await eventually(() => expectQueued(fleet, 0, 0))
  since(`${journal.size} entries stored, with ${fleet.logged('recovering a batch').length} recoveries,`)
  await expectAllStored(fleet, journal)
})

it('everything that is queued is stored while Redis is above its memory limit, also the batches of a dead worker', async () => {
  const fleet = await startFleet({ environment: { LOCK_DURATION_MS: '1000', BATCH_ROWS_MAX: '1000' } })
  const journal = new Journal('full-redis')
  await fleet.add(journal, 3_000, 5)
  // Below what Redis uses without any job.
  await fleet.redis.config('SET', 'maxmemory', '1mb')
  await expect(fleet.redis.set('x', '1')).rejects.toThrow('OOM')
  fleet.gate.insertDelayMs = 1_000
  const since = stopwatch('the limit')
  const victim = await fleet.startWorker()
  await eventually(async () => expect(fleet.gate.delayedInserts).toBe(2))
  await victim.process.stop({ signal: 'SIGKILL' })
  fleet.gate.insertDelayMs = 0
  const survivor = await fleet.startWorker()
  await eventually(() => expectQueued(fleet, 0, 0))
  since(`${journal.size} entries stored`)
  expect(await readiness(survivor)).toMatch(/^200 /)
  expect(fleet.logged('recovering a batch').length).toBeGreaterThanOrEqual(2)
  await expectAllStored(fleet, journal)
})

it('one worker with slow inserts stores the chunks of all shards, in turns, and recovers nothing', async () => {
  const shards = 16
  const rowsPerChunk = 10
  const rowsPerBatch = 200
  const batchesPerShard = 8
  const fleet = await startFleet({ shards, environment: { BATCH_ROWS_MAX: String(rowsPerBatch) } })
  const journal = new Journal('many-shards')
  // All shards have batches to insert until the last round. With two slots, they wait for each other.
  await fleet.add(journal, (shards * batchesPerShard * rowsPerBatch) / rowsPerChunk, rowsPerChunk)
  fleet.gate.insertDelayMs = 200
  await startWorkers(fleet, 1)
  await eventually(async () =>
    expect(fleet.gate.acknowledged.length).toBeGreaterThan((shards * batchesPerShard) / 2),
  )
  const stored = await select<{ rows: string }>(
    fleet.services.clickhouse,
    `SELECT intDiv(toUInt32(splitByChar('-', message)[-1]), ${rowsPerChunk}) % ${shards} AS shard, count() AS rows FROM logs GROUP BY shard`,
  )
  const batches = stored.map(({ rows }) => Number(rows) / rowsPerBatch)
  report(`batches stored, by shard: ${batches.join(' ')}`)
  expect(batches).toHaveLength(shards)
  expect(Math.max(...batches) - Math.min(...batches)).toBeLessThanOrEqual(2)
  await expectAllStored(fleet, journal)
  expect(fleet.logged('recovering a batch')).toEqual([])
})
