import { SettingsError, type SettingsOf } from '@sluice/runtime'
import { chunkLimits } from '../chunks/chunk-writer.ts'
import type { OverloadReason } from './overloaded-error.ts'
import type { Marks } from './watermark.ts'

/**
 * The marks, as the environment gives them; docs/overload.md says how to choose them. A Redis that is full stops the
 * workers too, as they write down what they take: so no mark on its memory is above 95 %.
 */
export const overloadSettings = {
  REDIS_MEMORY_HIGH_PERCENT: {
    type: 'integer',
    minimum: 1,
    maximum: 95,
    default: 80,
    description: 'How full Redis may be, of its `maxmemory`, before entries are refused.',
  },
  REDIS_MEMORY_LOW_PERCENT: {
    type: 'integer',
    minimum: 0,
    maximum: 95,
    default: 70,
    description: 'How full Redis may be when entries are taken again.',
  },
  REDIS_MEMORY_BYTES: {
    type: 'integer',
    minimum: 1_048_576,
    default: 1_073_741_824,
    description: 'What the two are percentages of where Redis has no `maxmemory`.',
  },
  QUEUE_HIGH_JOBS: {
    type: 'integer',
    minimum: 1,
    default: 5_000_000,
    description: 'How many chunks may wait in the queue before entries are refused.',
  },
  QUEUE_LOW_JOBS: {
    type: 'integer',
    minimum: 0,
    default: 4_000_000,
    description: 'How many may wait when entries are taken again.',
  },
  QUEUE_AGE_HIGH_S: {
    type: 'integer',
    minimum: 1,
    default: 86_400,
    description: 'How long the oldest chunk may have waited before entries are refused.',
  },
  QUEUE_AGE_LOW_S: {
    type: 'integer',
    minimum: 0,
    default: 43_200,
    description: 'How long it may have waited when entries are taken again.',
  },
  EVENT_LOOP_DELAY_HIGH_MS: {
    type: 'integer',
    minimum: 1,
    default: 500,
    description: "How late half of the API process's turns may be before entries are refused.",
  },
  EVENT_LOOP_DELAY_LOW_MS: {
    type: 'integer',
    minimum: 0,
    default: 250,
    description: 'How late they may be when entries are taken again.',
  },
} as const

/**
 * The marks on what waits in this process, as shares of what it may hold. Those who come at the upper one are refused
 * before their bodies are read; what is being read by then still fits.
 */
const bytesInFlight: Marks = {
  high: chunkLimits.bytesWaitingMax * 0.75,
  low: chunkLimits.bytesWaitingMax * 0.5,
}

/**
 * The marks of each reason, in the unit of its signal.
 *
 * @throws SettingsError when a low-water mark is not below its high-water mark
 */
export function overloadMarks(settings: SettingsOf<typeof overloadSettings>): Record<OverloadReason, Marks> {
  const pair = (low: keyof typeof settings, high: keyof typeof settings): Marks => {
    if (settings[low] < settings[high]) return { high: settings[high], low: settings[low] }
    throw new SettingsError(`invalid settings: ${low} must be below ${high}`)
  }
  return {
    redis_memory: pair('REDIS_MEMORY_LOW_PERCENT', 'REDIS_MEMORY_HIGH_PERCENT'),
    queue_depth: pair('QUEUE_LOW_JOBS', 'QUEUE_HIGH_JOBS'),
    queue_age: pair('QUEUE_AGE_LOW_S', 'QUEUE_AGE_HIGH_S'),
    bytes_in_flight: bytesInFlight,
    event_loop_delay: pair('EVENT_LOOP_DELAY_LOW_MS', 'EVENT_LOOP_DELAY_HIGH_MS'),
  }
}
