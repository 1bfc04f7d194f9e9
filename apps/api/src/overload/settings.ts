import { SettingsError, type SettingsOf } from '@sluice/runtime'
import { BODY_LIMITS_MIN } from './body-budget.ts'

/** Why requests are rejected, in order of precedence if there are several reasons. */
export const overloadReasons = [
  'redis_memory',
  'queue_depth',
  'queue_age',
  'bytes_in_flight',
  'event_loop_delay',
] as const

export type OverloadReason = (typeof overloadReasons)[number]

/** The high-water mark and the low-water mark of a signal. */
export interface Thresholds {
  readonly high: number
  /** Below `high`. The gap keeps a signal near the high-water mark from switching on and off every second. */
  readonly low: number
}

/**
 * The high-water and low-water marks that can be set; docs/overload.md explains how to choose them. A full Redis also stops
 * the workers, which persist the batches that they claim. For that reason no mark on its memory may be above 95 %.
 */
export const overloadSettings = {
  REDIS_MEMORY_HIGH_PERCENT: {
    type: 'integer',
    minimum: 1,
    maximum: 95,
    default: 80,
    description:
      'Memory use of Redis at which the API starts to reject entries, in percent of `maxmemory` or REDIS_MEMORY_BYTES.',
  },
  REDIS_MEMORY_LOW_PERCENT: {
    type: 'integer',
    minimum: 0,
    maximum: 95,
    default: 70,
    description:
      'Memory use of Redis at which the API accepts entries again, in percent of `maxmemory` or REDIS_MEMORY_BYTES.',
  },
  QUEUE_HIGH_JOBS: {
    type: 'integer',
    minimum: 1,
    default: 5_000_000,
    description:
      'Number of chunks in the queue, waiting or in hand, at which the API starts to reject entries.',
  },
  QUEUE_LOW_JOBS: {
    type: 'integer',
    minimum: 0,
    default: 4_000_000,
    description: 'Number of chunks in the queue, waiting or in hand, at which the API accepts entries again.',
  },
  QUEUE_AGE_HIGH_S: {
    type: 'integer',
    minimum: 1,
    default: 86_400,
    description:
      'Age of the oldest chunk in the queue at which the API starts to reject entries, in seconds.',
  },
  QUEUE_AGE_LOW_S: {
    type: 'integer',
    minimum: 0,
    default: 43_200,
    description: 'Age of the oldest chunk in the queue at which the API accepts entries again, in seconds.',
  },
  EVENT_LOOP_DELAY_HIGH_MS: {
    type: 'integer',
    minimum: 1,
    default: 500,
    description: 'Median event-loop delay at which an API process starts to reject entries, in milliseconds.',
  },
  EVENT_LOOP_DELAY_LOW_MS: {
    type: 'integer',
    minimum: 0,
    default: 250,
    description: 'Median event-loop delay at which an API process accepts entries again, in milliseconds.',
  },
  BODIES_BYTES_MAX: {
    type: 'integer',
    minimum: BODY_LIMITS_MIN,
    // 192 MiB are 19 bodies of the maximum size with their rows, or 2,800 batch requests of 35 KB.
    default: 201_326_592,
    description:
      'Bytes of request bodies and their rows that an API process holds at most, from their arrival until their requests are answered.',
  },
  PROJECT_BODIES_BYTES_MAX: {
    type: 'integer',
    minimum: BODY_LIMITS_MIN,
    // 128 MiB: half a second of the highest load while Redis does not reply. The rest is for other projects.
    default: 134_217_728,
    description: 'Bytes of request bodies and their rows that an API process holds at most for one project.',
  },
} as const

/** The thresholds of each signal, in the unit of the signal. */
export type OverloadThresholds = Readonly<Record<OverloadReason, Thresholds>>

/**
 * Rows that wait for Redis, bytes: most of a second of the highest load. Redis has stopped or is slow then, so requests are rejected
 * before their bodies are read. The rows of bodies that are being read are bounded by `BODIES_BYTES_MAX`.
 */
const BYTES_IN_FLIGHT: Thresholds = { high: 48_000_000, low: 32_000_000 }

/** @throws SettingsError when a low-water mark is not below its high-water mark */
export function overloadThresholds(settings: SettingsOf<typeof overloadSettings>): OverloadThresholds {
  const pair = (low: keyof typeof settings, high: keyof typeof settings): Thresholds => {
    if (settings[low] < settings[high]) return { high: settings[high], low: settings[low] }
    throw new SettingsError(`invalid settings: ${low} must be below ${high}`)
  }
  return {
    redis_memory: pair('REDIS_MEMORY_LOW_PERCENT', 'REDIS_MEMORY_HIGH_PERCENT'),
    queue_depth: pair('QUEUE_LOW_JOBS', 'QUEUE_HIGH_JOBS'),
    queue_age: pair('QUEUE_AGE_LOW_S', 'QUEUE_AGE_HIGH_S'),
    bytes_in_flight: BYTES_IN_FLIGHT,
    event_loop_delay: pair('EVENT_LOOP_DELAY_LOW_MS', 'EVENT_LOOP_DELAY_HIGH_MS'),
  }
}
