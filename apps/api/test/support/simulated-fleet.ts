import { seededRandom } from '@sluice/harness/random'
import { AddRate } from '@sluice/queue'
import { AddPace } from '../../src/chunks/add-pace.ts'

/** A process that adds as often as its pace and Redis' answers allow, or as requests arrive. */
export interface SimulatedProcess {
  /** Requests per second, at random times. Infinity for a process that always has rows to add. */
  readonly requestsPerS: number
  /** When it starts. */
  readonly startMs?: number
  /** When it stops. */
  readonly stopMs?: number
}

/** Adds per second of all processes, in windows. */
const WINDOW_MS = 250
/** The time that an add waits for the disk and the network. */
const ROUND_TRIP_MS = 0.6
/** The time in which Redis does nothing but run the script of an add. */
const SERVICE_MS = 0.15
/** A few answers are read late, by an event loop that was busy. */
const LATE_SHARE = 0.02
const LATE_MS_MAX = 30

interface Running {
  readonly rate: AddRate
  readonly pace: AddPace
  readonly requestsPerS: number
  readonly stopMs: number
  /** When its last add is answered. */
  freeMs: number
  /** When the oldest request that waits has arrived. */
  requestMs: number
  dueMs: number
  adds: number
}

export interface FleetResult {
  /** In each window of a quarter of a second. */
  readonly addsPerS: readonly number[]
  /** Of each process. */
  readonly adds: readonly number[]
  /** From the arrival of the oldest request of each add until the add was started, in the order of the adds. */
  readonly waitsMs: readonly number[]
}

/**
 * Simulates the real pace of many processes against a model of Redis: one thread that runs one add at a time, and answers after a
 * round trip.
 *
 * @param counterAt changes the counter of Redis at a time
 */
export function simulateFleet(
  processes: readonly SimulatedProcess[],
  durationMs: number,
  counterAt: (nowMs: number, count: number) => number = (_nowMs, count) => count,
): FleetResult {
  const random = seededRandom(1)
  let nowMs = 0
  let count = 0
  let redisFreeMs = 0
  const addsPerS = Array.from({ length: durationMs / WINDOW_MS }, () => 0)
  const waitsMs: number[] = []
  const fleet = processes.map(({ requestsPerS, startMs = 0, stopMs = durationMs }): Running => {
    const rate = new AddRate()
    const queue = {
      get addsPerS() {
        return rate.perS
      },
    }
    const pace = new AddPace(queue, () => nowMs)
    return { rate, pace, requestsPerS, stopMs, freeMs: startMs, requestMs: startMs, dueMs: startMs, adds: 0 }
  })
  for (;;) {
    const next = fleet.reduce((first, each) => (each.dueMs < first.dueMs ? each : first))
    nowMs = next.dueMs
    if (nowMs >= durationMs) return { addsPerS, adds: fleet.map(({ adds }) => adds), waitsMs }
    const waitMs = next.pace.waitMs()
    if (waitMs > 0) {
      // A timer has a resolution of a millisecond.
      next.dueMs = nowMs + Math.max(1, Math.ceil(waitMs))
      continue
    }
    next.pace.start()
    next.adds += 1
    waitsMs.push(nowMs - next.requestMs)
    const window = Math.floor(nowMs / WINDOW_MS)
    addsPerS[window] = (addsPerS[window] ?? 0) + 1_000 / WINDOW_MS
    count = counterAt(nowMs, count) + 1
    redisFreeMs = Math.max(redisFreeMs, nowMs) + SERVICE_MS
    next.freeMs = redisFreeMs + ROUND_TRIP_MS + (random() < LATE_SHARE ? random() * LATE_MS_MAX : 0)
    next.rate.record(count, next.freeMs)
    next.requestMs =
      next.requestsPerS === Infinity ? nowMs : nowMs + (-Math.log(1 - random()) * 1_000) / next.requestsPerS
    const dueMs = Math.max(next.freeMs, next.requestMs)
    next.dueMs = dueMs < next.stopMs ? dueMs : Infinity
  }
}
