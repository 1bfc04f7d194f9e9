import { integerSetting, type SettingsOf } from '@sluice/runtime'

/**
 * The default rate limit of a project. It applies even if nothing is configured, because a single faulty project must not
 * fill the queue for all. It is far above the log volume of one application, and about as high as the throughput of one API process.
 * The local installation (`npm start`) switches it off.
 */
export const rateLimitSettings = {
  RATE_LIMIT_ENTRIES_PER_SECOND: integerSetting(
    { minimum: 0, maximum: 1_000_000_000, default: 100_000 },
    'Default rate limit of a project, in entries per second; 0 means unlimited.',
  ),
  RATE_LIMIT_BYTES_PER_SECOND: integerSetting(
    { minimum: 0, maximum: 1_000_000_000_000, default: 100 * 1024 * 1024 },
    'Default rate limit of a project, in bytes of decoded bodies per second; 0 means unlimited.',
  ),
} as const

export type RateLimitSettings = SettingsOf<typeof rateLimitSettings>
