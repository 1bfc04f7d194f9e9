import { createLogger, type Logger } from '@sluice/runtime'
import { OverloadMonitor } from '../../src/overload/overload-monitor.ts'
import type { OverloadReason } from '../../src/overload/overloaded-error.ts'
import type { QueueReading } from '../../src/overload/queue-gauge.ts'
import type { Marks } from '../../src/overload/watermark.ts'

const marks: Marks = { high: 80, low: 70 }

/** The signals of an overload monitor, as the test sets them; each has 80 and 70 as its marks. */
export class FakeSignals {
  readonly values: Record<OverloadReason, number> = {
    redis_memory: 0,
    queue_depth: 0,
    queue_age: 0,
    bytes_in_flight: 0,
    event_loop_delay: 0,
  }
  /** Runs before each reading of Redis answers. */
  beforeAnswer: () => Promise<void> = () => Promise.resolve()
  readings = 0
  random = 0
  readonly monitor: OverloadMonitor

  constructor(logger: Logger = createLogger('test', 'silent')) {
    this.monitor = new OverloadMonitor({
      marks: {
        redis_memory: marks,
        queue_depth: marks,
        queue_age: marks,
        bytes_in_flight: marks,
        event_loop_delay: marks,
      },
      queue: { read: () => this.#read() },
      bytesInFlight: () => this.values.bytes_in_flight,
      eventLoopDelayMs: () => this.values.event_loop_delay,
      logger,
      random: () => this.random,
    })
  }

  /** Sets a signal, and lets the monitor read it. */
  async set(reason: OverloadReason, value: number): Promise<void> {
    this.values[reason] = value
    await this.monitor.poll()
  }

  async #read(): Promise<QueueReading> {
    this.readings += 1
    await this.beforeAnswer()
    const { queue_depth: jobs, queue_age: oldestAgeS, redis_memory: memoryPercent } = this.values
    return { jobs, oldestAgeS, memoryPercent }
  }
}
