import { commonSettings, readSettings, redisSettings, type SettingsOf } from '@sluice/runtime'
import { parseTrustedProxies } from './connections/trusted-proxies.ts'
import { overloadMarks, overloadSettings } from './overload/settings.ts'
import { rateLimitSettings } from './rate-limits/settings.ts'

export const apiSettings = {
  ...commonSettings,
  ...redisSettings,
  ...overloadSettings,
  ...rateLimitSettings,
  HOST: {
    type: 'string',
    default: '127.0.0.1',
    description: 'Where the API listens. In a container, 0.0.0.0.',
  },
  PORT: { type: 'integer', minimum: 0, maximum: 65_535, default: 3000, description: "The API's port." },
  IDEMPOTENCY_WINDOW_SECONDS: {
    type: 'integer',
    // Less than the time that a client tries again for would be of no use; more than a day costs memory for nothing.
    minimum: 60,
    maximum: 86_400,
    default: 3_600,
    description: 'How long an idempotency key is remembered.',
  },
  TRUST_PROXY: {
    type: 'string',
    description:
      'Proxies whose X-Forwarded-For is believed: addresses, CIDR ranges or `loopback`, `linklocal`, `uniquelocal`, by commas.',
  },
} as const

export interface ApiConfig extends SettingsOf<typeof apiSettings> {
  /** What TRUST_PROXY says, as Fastify's `trustProxy` takes it. */
  readonly trustedProxies: string[] | false
}

/** @throws SettingsError */
export function readApiConfig(environment: NodeJS.ProcessEnv): ApiConfig {
  const settings = readSettings(apiSettings, environment)
  overloadMarks(settings)
  return { ...settings, trustedProxies: parseTrustedProxies(settings.TRUST_PROXY) }
}
