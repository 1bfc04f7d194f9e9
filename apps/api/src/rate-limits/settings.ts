import type { SettingsOf } from '@sluice/runtime'

/**
 * The default rate limit of a project. It applies even if nothing is configured, because a single faulty project must not
 * fill the queue for all. It is far above the log volume of one application, and about as high as the throughput of one API process.
 * The local installation (`npm start`) switches it off.
 */
export const rateLimitSettings = {
  RATE_LIMIT_ENTRIES_PER_SECOND: {
    type: 'integer',
    minimum: 0,
    maximum: 1_000_000_000,
    default: 100_000,
    description: 'Default rate limit of a project, in entries per second; 0 means unlimited.',
  },
  RATE_LIMIT_BURST_ENTRIES: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000_000,
    description:
      'Default burst of a project, in entries; if unset, twice RATE_LIMIT_ENTRIES_PER_SECOND, but at least one full request.',
  },
  RATE_LIMIT_BYTES_PER_SECOND: {
    type: 'integer',
    minimum: 0,
    maximum: 1_000_000_000_000,
    default: 100 * 1024 * 1024,
    description: 'Default rate limit of a project, in bytes of decoded bodies per second; 0 means unlimited.',
  },
  RATE_LIMIT_BURST_BYTES: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000_000_000,
    description:
      'Default burst of a project, in bytes of decoded bodies; if unset, twice RATE_LIMIT_BYTES_PER_SECOND, but at least one full request.',
  },
} as const

export type RateLimitSettings = SettingsOf<typeof rateLimitSettings>
