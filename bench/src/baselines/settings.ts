import type { ClickHouseAccess } from '@sluice/runtime'

/** What both baselines' API processes are told beside the settings that every process has. */
export const apiSettings = {
  PORT: { type: 'integer', minimum: 1, maximum: 65_535, default: 3000, description: "The API's port." },
  API_KEY: { type: 'string', default: '', description: 'The key that clients send.' },
  PROJECT_ID: { type: 'string', default: 'bench', description: "The key's project." },
} as const

export function accessFrom(settings: {
  readonly CLICKHOUSE_URL: string
  readonly CLICKHOUSE_USERNAME: string
  readonly CLICKHOUSE_PASSWORD: string
  readonly CLICKHOUSE_DATABASE: string
}): ClickHouseAccess {
  return {
    url: settings.CLICKHOUSE_URL,
    username: settings.CLICKHOUSE_USERNAME,
    password: settings.CLICKHOUSE_PASSWORD,
    database: settings.CLICKHOUSE_DATABASE,
  }
}
