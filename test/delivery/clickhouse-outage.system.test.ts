import { eventually, FaultProxy } from '@sluice/harness'
import { Fleet } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { isExactlyOnce } from '@sluice/harness/settle'
import type { App } from '@sluice/local'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { report, shorterWaits } from './support.ts'

/** Four times as long as workers retry before they give up. */
const OUTAGE_MS = 8_000
/** A probe of the workers, which have given up, and the batches of the backlog. */
const BACK_WITHIN_MS = 20_000

let fleet: Fleet
let proxy: FaultProxy

beforeAll(async () => {
  fleet = await Fleet.start({ environment: shorterWaits })
  proxy = await FaultProxy.open(fleet.gate.url)
  for (let worker = 0; worker < 2; worker += 1) await fleet.startWorker({ clickhouseUrl: proxy.url })
})

afterAll(async () => {
  await fleet?.stop()
  await proxy?.down()
})

async function readiness({ opsUrl }: App): Promise<string> {
  const response = await fetch(`${opsUrl}/readyz`)
  return `${response.status} ${await response.text()}`
}

it('after an outage of ClickHouse in which all workers gave up, everything is stored and all workers are ready within seconds', async () => {
  const journal = new Journal('outage')
  const feeding = fleet.feed(journal, { chunksPerS: 20, rowsPerChunk: 3, durationMs: OUTAGE_MS + 3_000 })
  await eventually(async () => expect(fleet.gate.acknowledged.length).toBeGreaterThan(0))
  await proxy.down()
  const gaveUp = expect.stringMatching(/^503 .*its chunks are returned/) as string
  await eventually(async () =>
    expect(await Promise.all(fleet.workers.map(readiness))).toEqual([gaveUp, gaveUp]),
  )
  await feeding
  await proxy.up()
  const backAtMs = performance.now()
  const reportTime = (text: string): void =>
    report(`${text} ${Math.round(performance.now() - backAtMs)} ms after the outage`)
  await eventually(async () => expect(await fleet.queued()).toEqual({ waiting: 0, active: 0 }))
  reportTime(`${journal.size} entries stored`)
  const ready = expect.stringMatching(/^200 /) as string
  await eventually(async () =>
    expect(await Promise.all(fleet.workers.map(readiness))).toEqual([ready, ready]),
  )
  reportTime('ready')
  expect(performance.now() - backAtMs).toBeLessThan(BACK_WITHIN_MS)
  const settlement = await fleet.settle(journal)
  expect(settlement).toSatisfy(isExactlyOnce)
  expect(settlement.stored).toMatchObject({ rows: journal.size, deadLetters: 0 })
}, 180_000)
