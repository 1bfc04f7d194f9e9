import { parseTrustedProxies, proxySettings } from '@sluice/access'
import {
  canSharePorts,
  commonSettings,
  integerSetting,
  processCount,
  readSettings,
  redisSettings,
  SettingsError,
  stringSetting,
} from '@sluice/runtime'
import { traceSettings } from '@sluice/traces'
import { overloadSettings } from './overload/overload-monitor.ts'
import { rateLimitSettings } from './rate-limits/rate-limit.ts'
import { sampleSettings } from './traces/request-traces.ts'

export const apiSettings = {
  ...commonSettings,
  ...redisSettings,
  ...overloadSettings,
  ...rateLimitSettings,
  ...traceSettings,
  ...sampleSettings,
  HOST: stringSetting(
    { default: '127.0.0.1' },
    'Address on which the API listens; use 0.0.0.0 in a container.',
  ),
  PORT: integerSetting({ minimum: 0, maximum: 65_535, default: 3000 }, 'TCP port on which the API listens.'),
  API_PROCESSES: {
    ...processCount,
    description:
      'How many processes the API runs on its port. More than one needs Linux. See docs/scaling.md.',
  },
  IDEMPOTENCY_WINDOW_SECONDS: integerSetting(
    {
      // A window shorter than a client's retries is useless; a window above a day only costs memory.
      minimum: 60,
      maximum: 86_400,
      default: 3_600,
    },
    'How long the API remembers an idempotency key, in seconds.',
  ),
  IDEMPOTENCY_KEYS_PER_PROJECT_MAX: integerSetting(
    {
      // Each of up to 32 shards has an equal share.
      minimum: 1_000,
      maximum: 1_000_000_000,
      // 245 MB: a quarter of REDIS_MEMORY_BYTES. 278 requests per second use it up in an hour.
      default: 1_000_000,
    },
    'How many idempotency keys of a project the API remembers at a time. Each takes about 245 bytes of Redis.',
  ),
  DOCS_ENABLED: {
    type: 'boolean',
    default: true,
    description:
      'If false, the API does not serve the page `/docs`. The OpenAPI document `/openapi.json` remains available.',
  },
  METRICS_PROJECTS_MAX: integerSetting(
    { minimum: 0, maximum: 10_000, default: 0 },
    'How many projects have a metric of their own, `sluice_project_entries_accepted_total`. Those above it are counted as `other`. 0: none has.',
  ),
  ...proxySettings,
} as const

/** @throws SettingsError */
export function readApiConfig(environment: NodeJS.ProcessEnv, canShare = canSharePorts) {
  const settings = readSettings(apiSettings, environment)
  if (settings.API_PROCESSES > 1 && !canShare)
    throw new SettingsError('invalid settings: API_PROCESSES above 1 needs Linux')
  return { ...settings, trustedProxies: parseTrustedProxies(settings.TRUST_PROXY) }
}
