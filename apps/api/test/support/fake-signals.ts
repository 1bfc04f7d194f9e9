import { createLogger, type Logger } from '@sluice/runtime'
import type { QueueReading } from '@sluice/ops'
import { OverloadMonitor } from '../../src/overload/overload-monitor.ts'
import type { OverloadReason, Thresholds } from '../../src/overload/settings.ts'

const thresholds: Thresholds = { high: 80, low: 70 }

/** An overload monitor with signals that the test sets. The thresholds of each signal are 80 and 70. */
export class FakeSignals {
  readonly values: Record<OverloadReason, number> = {
    redis_memory: 0,
    queue_depth: 0,
    queue_age: 0,
    bytes_in_flight: 0,
    event_loop_delay: 0,
  }
  failed = 0
  /** Runs before each read of Redis completes. */
  beforeAnswer: () => Promise<void> = () => Promise.resolve()
  reads = 0
  random = 0
  readonly monitor: OverloadMonitor

  constructor(logger: Logger = createLogger('test', 'silent')) {
    this.monitor = new OverloadMonitor({
      thresholds: {
        redis_memory: thresholds,
        queue_depth: thresholds,
        queue_age: thresholds,
        bytes_in_flight: thresholds,
        event_loop_delay: thresholds,
      },
      queue: { read: () => this.#read() },
      bytesInFlight: () => this.values.bytes_in_flight,
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
