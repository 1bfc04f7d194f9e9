import { createLogger, type Logger } from '@sluice/runtime'
import type { QueueReading } from '@sluice/ops'
import {
  OverloadMonitor,
  type OverloadReason,
  overloadReasons,
  type Thresholds,
} from '../../src/overload/overload-monitor.ts'

const thresholds: Thresholds = { high: 80, low: 70 }

/** The same value for each signal. */
export function forEachReason<T>(value: T): Record<OverloadReason, T> {
  return Object.fromEntries(overloadReasons.map((reason) => [reason, value])) as Record<OverloadReason, T>
}

/** An overload monitor with signals that the test sets. The thresholds of each signal are 80 and 70. */
export class FakeSignals {
  readonly values = forEachReason(0)
  failed = 0
  /** Runs before each read of Redis completes. */
  beforeAnswer: () => Promise<void> = () => Promise.resolve()
  reads = 0
  random = 0
  readonly monitor: OverloadMonitor

  constructor(logger: Logger = createLogger('test', 'silent')) {
    this.monitor = new OverloadMonitor({
      thresholds: forEachReason(thresholds),
      queue: { read: () => this.#read() },
      eventLoopDelayMs: () => this.values.event_loop_delay,
      logger,
      random: () => this.random,
    })
  }

  /** Sets a signal and lets the monitor read it. */
  async set(reason: OverloadReason, value: number): Promise<void> {
    this.values[reason] = value
    await this.monitor.poll()
  }

  async #read(): Promise<QueueReading> {
    this.reads += 1
    await this.beforeAnswer()
    const { queue_depth: depth, queue_age: oldestAgeS, redis_memory: memoryPercent } = this.values
    const inHand = Math.min(depth, 10)
    return {
      waiting: depth - inHand,
      inHand,
      oldestAgeS,
      memoryPercent,
      failed: this.failed,
      shards: [],
      servers: [],
    }
  }
}
