import { integerSetting, type SettingsOf } from '@sluice/runtime'
import { BODY_LIMITS_MIN, type BodyLimits } from './body-budget.ts'

/** Why requests are rejected, in order of precedence if there are several reasons. */
export const overloadReasons = ['redis_memory', 'queue_depth', 'queue_age', 'event_loop_delay'] as const

export type OverloadReason = (typeof overloadReasons)[number]

/** The high-water mark and the low-water mark of a signal. */
export interface Thresholds {
  readonly high: number
  /** Below `high`. The gap keeps a signal near the high-water mark from switching on and off every second. */
  readonly low: number
}

/** The part of what a process holds of bodies that may be of one project. The rest is for other projects. */
const PROJECT_SHARE = 2 / 3

/**
 * The high-water marks that can be set; docs/overload.md explains how to choose them. A full Redis also stops the workers, which persist
 * the batches that they claim. For that reason the mark on its memory cannot be above 95 %.
 */
export const overloadSettings = {
  REDIS_MEMORY_HIGH_PERCENT: integerSetting(
    { minimum: 2, maximum: 95, default: 80 },
    'Memory use of Redis at which the API starts to reject entries, in percent of `maxmemory` or REDIS_MEMORY_BYTES.',
  ),
  QUEUE_HIGH_JOBS: integerSetting(
    { minimum: 2, default: 5_000_000 },
    'Number of chunks in the queue, waiting or in hand, at which the API starts to reject entries.',
  ),
  QUEUE_AGE_HIGH_S: integerSetting(
    { minimum: 2, default: 86_400 },
    'Age of the oldest chunk in the queue at which the API starts to reject entries, in seconds.',
  ),
  EVENT_LOOP_DELAY_HIGH_MS: integerSetting(
    { minimum: 2, default: 500 },
    'Median event-loop delay at which an API process starts to reject entries, in milliseconds.',
  ),
  BODIES_BYTES_MAX: integerSetting(
    {
      minimum: Math.ceil(BODY_LIMITS_MIN / PROJECT_SHARE),
      // 192 MiB are 19 bodies of the maximum size with their rows, or 2,800 batch requests of 35 KB.
      default: 201_326_592,
    },
    'Bytes of request bodies and their rows that an API process holds at most, from their arrival until their requests are answered. Of one project, two thirds of them.',
  ),
} as const

/** The thresholds of each signal, in the unit of the signal. */
export type OverloadThresholds = Readonly<Record<OverloadReason, Thresholds>>

const below = (high: number, share: number): Thresholds => ({ high, low: Math.floor(share * high) })

export function overloadThresholds(settings: SettingsOf<typeof overloadSettings>): OverloadThresholds {
  return {
    redis_memory: below(settings.REDIS_MEMORY_HIGH_PERCENT, 7 / 8),
    queue_depth: below(settings.QUEUE_HIGH_JOBS, 4 / 5),
    queue_age: below(settings.QUEUE_AGE_HIGH_S, 1 / 2),
    event_loop_delay: below(settings.EVENT_LOOP_DELAY_HIGH_MS, 1 / 2),
  }
}

export function bodyLimits({ BODIES_BYTES_MAX: bytesMax }: SettingsOf<typeof overloadSettings>): BodyLimits {
  return { bytesMax, projectBytesMax: Math.floor(PROJECT_SHARE * bytesMax) }
}
