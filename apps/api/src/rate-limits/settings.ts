import type { SettingsOf } from '@sluice/runtime'
import type { RateLimitDefaults } from './rate-limit.ts'

/**
 * What a project may send that has no limits of its own. One project that runs wild must not fill the queue for all, so
 * there is a limit without being asked for: far above what one application logs, and about what one API process takes. What runs everything on one machine for one person switches it off.
 */
export const rateLimitSettings = {
  RATE_LIMIT_ENTRIES_PER_SECOND: {
    type: 'integer',
    minimum: 0,
    maximum: 1_000_000_000,
    default: 100_000,
    description: 'How many entries a second a project may send that has no limit of its own; 0 is no limit.',
  },
  RATE_LIMIT_BURST_ENTRIES: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000_000,
    description:
      "How many entries such a project may send at once after a pause; two seconds' worth without it.",
  },
  RATE_LIMIT_BYTES_PER_SECOND: {
    type: 'integer',
    minimum: 0,
    maximum: 1_000_000_000_000,
    default: 100 * 1024 * 1024,
    description: 'How many bytes of bodies a second, decoded, such a project may send; 0 is no limit.',
  },
  RATE_LIMIT_BURST_BYTES: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000_000_000,
    description:
      "How many bytes such a project may send at once after a pause; two seconds' worth without it.",
  },
} as const

export function defaultsFromSettings(settings: SettingsOf<typeof rateLimitSettings>): RateLimitDefaults {
  return {
    entriesPerSecond: settings.RATE_LIMIT_ENTRIES_PER_SECOND,
    bytesPerSecond: settings.RATE_LIMIT_BYTES_PER_SECOND,
    burstEntries: settings.RATE_LIMIT_BURST_ENTRIES,
    burstBytes: settings.RATE_LIMIT_BURST_BYTES,
  }
}
