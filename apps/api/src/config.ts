import { commonSettings, readSettings, redisSettings, type SettingsOf } from '@sluice/runtime'
import { rateLimitSettings } from './rate-limits/settings.ts'

export const apiSettings = {
  ...commonSettings,
  ...redisSettings,
  ...rateLimitSettings,
  HOST: {
    type: 'string',
    default: '127.0.0.1',
    description: 'Where the API listens. In a container, 0.0.0.0.',
  },
  PORT: { type: 'integer', minimum: 0, maximum: 65_535, default: 3000, description: "The API's port." },
} as const

/** @throws SettingsError */
export function readApiConfig(environment: NodeJS.ProcessEnv): SettingsOf<typeof apiSettings> {
  return readSettings(apiSettings, environment)
}
