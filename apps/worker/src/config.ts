import {
  clickhouseSettings,
  commonSettings,
  readSettings,
  redisSettings,
  type SettingsOf,
} from '@sluice/runtime'

export const workerSettings = {
  ...commonSettings,
  ...redisSettings,
  ...clickhouseSettings,
  BATCH_WAIT_MS: {
    type: 'integer',
    minimum: 1,
    maximum: 60_000,
    default: 500,
    description:
      'How long rows wait for others before they are inserted. A row of a large insert costs ClickHouse less.',
  },
  BATCH_ROWS_MAX: {
    type: 'integer',
    minimum: 1,
    maximum: 500_000,
    default: 100_000,
    description: 'How many rows one insert holds at most, but for a chunk that is larger by itself.',
  },
  LOCK_DURATION_MS: {
    type: 'integer',
    minimum: 1_000,
    default: 30_000,
    description:
      'How long a dead worker keeps its chunks; another one takes them over some checks of at most 10 s later.',
  },
} as const

export type WorkerConfig = SettingsOf<typeof workerSettings>

/** @throws SettingsError */
export function readWorkerConfig(environment: NodeJS.ProcessEnv): WorkerConfig {
  return readSettings(workerSettings, environment)
}
