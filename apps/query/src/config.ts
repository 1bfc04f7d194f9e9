import { parseTrustedProxies, proxySettings } from '@sluice/access'
import { clickhouseSettings } from '@sluice/clickhouse'
import {
  commonSettings,
  integerSetting,
  readSettings,
  redisSettings,
  type SettingsOf,
  stringSetting,
} from '@sluice/runtime'

export const querySettings = {
  ...commonSettings,
  ...redisSettings,
  ...clickhouseSettings,
  QUERY_HOST: stringSetting(
    { default: '127.0.0.1' },
    'Address on which the query API and the explorer listen; use 0.0.0.0 in a container.',
  ),
  QUERY_PORT: integerSetting(
    { minimum: 0, maximum: 65_535, default: 3001 },
    'TCP port on which the query API and the explorer listen.',
  ),
  QUERY_TIME_MAX_MS: integerSetting(
    { minimum: 100, maximum: 600_000, default: 10_000 },
    'How long a query may take, in ms. A longer one is rejected, or its answer says what is left.',
  ),
  QUERY_ROWS_READ_MAX: integerSetting(
    { minimum: 0, maximum: 1_000_000_000_000, default: 2_000_000_000 },
    'How many entries a query may make ClickHouse read. 0: any number.',
  ),
  QUERY_BYTES_READ_MAX: integerSetting(
    { minimum: 0, maximum: 100_000_000_000_000, default: 200_000_000_000 },
    'How many bytes a query may make ClickHouse read, decompressed. 0: any number.',
  ),
  QUERY_MEMORY_BYTES_MAX: integerSetting(
    { minimum: 16_777_216, maximum: 1_000_000_000_000, default: 1_073_741_824 },
    'How much memory of ClickHouse a query may use, in bytes.',
  ),
  QUERIES_MAX: integerSetting(
    { minimum: 1, maximum: 1_000, default: 16 },
    'How many queries a process runs at once. Further ones are rejected with 429.',
  ),
  PROJECT_QUERIES_MAX: integerSetting(
    { minimum: 1, maximum: 1_000, default: 8 },
    'How many of them may be of one project.',
  ),
  ...proxySettings,
} as const

export interface QueryConfig extends SettingsOf<typeof querySettings> {
  /** TRUST_PROXY in the form of Fastify's option `trustProxy`. */
  readonly trustedProxies: string[] | false
}

/** @throws SettingsError */
export function readQueryConfig(environment: NodeJS.ProcessEnv): QueryConfig {
  const settings = readSettings(querySettings, environment)
  return { ...settings, trustedProxies: parseTrustedProxies(settings.TRUST_PROXY) }
}
