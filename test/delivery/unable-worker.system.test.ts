import { eventually, FaultProxy, pause } from '@sluice/harness'
import { ClickHouseGate } from '@sluice/harness/clickhouse-gate'
import { Fleet } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { expectAllStored, expectQueued, readiness, report, shorterWaits } from './support.ts'

/** Requests of one entry. */
const CHUNKS_PER_S = 20
/** What the unable worker held when it gave up is stored within this time after the beginning of the fault. */
const STORED_WITHIN_MS = 30_000
/** An insert without a response is given up after 5 s. A question that is asked then would take 5 s more. */
const RETURNED_WITHIN_MS = 20_000
/** By then, the worker has taken chunks if it takes any. */
const TAKES_WITHIN_MS = 3_000
const FED_MS = 10_000
/** Several probes fall into this time. */
const OBSERVED_MS = 3_000
const TEST_DEADLINE_MS = 120_000

let fleet: Fleet
/** Between the unable worker and ClickHouse. */
let gate: ClickHouseGate
let proxy: FaultProxy

beforeAll(async () => {
  fleet = await Fleet.start({ environment: shorterWaits })
  gate = await ClickHouseGate.open(fleet.services.clickhouse.url)
  proxy = await FaultProxy.open(gate.url)
})

afterAll(async () => {
  await fleet?.stop()
  await proxy?.down()
  await gate?.close()
})

afterEach(() => Promise.all(fleet.workers.map(({ process }) => process.stop())))

async function turnOwner(): Promise<string> {
  return eventually(async () => {
    const turn = await fleet.redis.get(fleet.names[0]?.turnKey ?? '')
    expect(turn).not.toBeNull()
    return turn?.replace(/^\w+:/, '') ?? ''
  })
}

const jobKey = (id: string): string => fleet.names[0]?.jobKey(id) ?? ''

/** The chunks that a worker has locked. */
async function chunksOf(workerId: string): Promise<string[]> {
  const ids = await fleet.redis.lrange(fleet.names[0]?.activeKey ?? '', 0, -1)
  const tokens = await Promise.all(ids.map((id) => fleet.redis.get(`${jobKey(id)}:lock`)))
  return ids.filter((_id, index) => tokens[index]?.startsWith(workerId))
}

/** How many of the jobs exist. Jobs are removed after their rows are stored. */
const left = async (ids: ReadonlySet<string>): Promise<number> =>
  ids.size === 0 ? 0 : fleet.redis.exists(...[...ids].map(jobKey))

const faults = {
  'gets no answer': {
    begin: () => proxy.hold('both'),
    end: () => {
      proxy.reset()
      proxy.resume()
    },
  },
  'is refused': { begin: () => proxy.down(), end: () => proxy.up() },
  'has a wrong password': {
    begin: () => void (gate.withholdsPassword = true),
    end: () => void (gate.withholdsPassword = false),
  },
} as const

/** `isExpected`: how many chunks the worker takes at once. It learns at its start that its password is wrong. A silence takes longer. */
const cases = [
  { fault: 'gets no answer', since: 'while it works', isExpected: (chunks: number) => chunks > 1 },
  { fault: 'gets no answer', since: 'from its start', isExpected: () => true },
  { fault: 'is refused', since: 'while it works', isExpected: (chunks: number) => chunks > 1 },
  { fault: 'has a wrong password', since: 'from its start', isExpected: (chunks: number) => chunks <= 1 },
] as const

it.each(cases)(
  'a worker that $fault $since returns its chunks to a healthy worker, fetches one at a time, and works again afterwards',
  { timeout: TEST_DEADLINE_MS },
  async ({ fault, since, isExpected }) => {
    const { begin, end } = faults[fault]
    const reportTime = (event: string, ms: number): void =>
      report(`${fault} ${since}: ${event} ${Math.round(ms)} ms`)
    if (since === 'from its start') await begin()
    // The first worker has the turn, and keeps it while it is not busy.
    const unable = await fleet.startWorker({ clickhouseUrl: proxy.url, until: 'alive' })
    const unableId = await turnOwner()
    const healthy = await fleet.startWorker()
    const journal = new Journal(`unable-${fault}-${since}`)
    if (since === 'while it works') await begin()

    const beganMs = performance.now()
    const feeding = fleet.feed(journal, { chunksPerS: CHUNKS_PER_S, rowsPerChunk: 1, durationMs: FED_MS })
    const taken = new Set<string>()
    let takenAtOnce = 0
    // One chunk may be its first probe.
    for (let held = 0; held > 1 || performance.now() < beganMs + TAKES_WITHIN_MS; await pause(50)) {
      const ids = await chunksOf(unableId)
      held = ids.length
      takenAtOnce = Math.max(takenAtOnce, held)
      for (const id of ids) taken.add(id)
      expect(performance.now() - beganMs).toBeLessThan(RETURNED_WITHIN_MS)
    }
    expect(takenAtOnce).toSatisfy(isExpected)
    reportTime(`${taken.size} chunks returned after`, performance.now() - beganMs)
    await eventually(async () => expect(await left(taken)).toBe(0))
    expect(performance.now() - beganMs).toBeLessThan(STORED_WITHIN_MS)
    reportTime('all of them stored after', performance.now() - beganMs)

    let heldMax = 0
    for (const endMs = performance.now() + OBSERVED_MS; performance.now() < endMs; await pause(50))
      heldMax = Math.max(heldMax, (await chunksOf(unableId)).length)
    expect(heldMax).toBeLessThanOrEqual(1)
    expect(await readiness(unable)).toMatch(/^503 .*no insert has succeeded for/)
    expect(await readiness(healthy)).toMatch(/^200 /)
    await feeding

    await end()
    const endedMs = performance.now()
    await eventually(async () => expect(await readiness(unable)).toMatch(/^200 /))
    reportTime('ready after', performance.now() - endedMs)
    await healthy.process.stop()
    const inserts = gate.acknowledged.length
    await fleet.add(journal, 20, 1)
    await eventually(() => expectQueued(fleet, 0, 0))
    expect(gate.acknowledged.length).toBeGreaterThan(inserts)
    await expectAllStored(fleet, journal)
  },
)
