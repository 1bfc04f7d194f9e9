import { clickhouseSettings } from '@sluice/clickhouse'
import {
  commonSettings,
  integerSetting,
  processCount,
  readSettings,
  redisSettings,
  type SettingsOf,
} from '@sluice/runtime'
import { traceSettings } from '@sluice/traces'

export const workerSettings = {
  ...commonSettings,
  ...redisSettings,
  ...clickhouseSettings,
  ...traceSettings,
  WORKER_PROCESSES: {
    ...processCount,
    description: 'How many processes the worker runs. See docs/scaling.md.',
  },
  BATCH_WAIT_MS: integerSetting(
    { minimum: 1, maximum: 60_000, default: 500 },
    'The time in ms for which rows wait for others before they are inserted. A row costs ClickHouse less in a large insert.',
  ),
  BATCH_ROWS_MAX: integerSetting(
    { minimum: 1, maximum: 500_000, default: 100_000 },
    'The maximum number of rows per insert. A single chunk with more rows is one insert.',
  ),
  LOCK_DURATION_MS: integerSetting(
    { minimum: 1_000, default: 30_000 },
    'The duration of a job lock in ms. Another worker fetches the chunks of a crashed worker within this time plus up to 20 s.',
  ),
} as const

export type WorkerConfig = SettingsOf<typeof workerSettings>

/** @throws SettingsError */
export function readWorkerConfig(environment: NodeJS.ProcessEnv): WorkerConfig {
  return readSettings(workerSettings, environment)
}
