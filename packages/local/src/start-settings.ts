import { resolve } from 'node:path'
import { apiSettings, readApiConfig } from '@sluice/api/config'
import { readSettings, SettingsError } from '@sluice/runtime'
import { readWorkerConfig, workerSettings } from '@sluice/worker/config'

type Environment = Readonly<Record<string, string | undefined>>

/** What `npm start` takes from its environment. */
export interface StartSettings {
  /** Undefined for the default one. An absolute path. */
  readonly dataDir: string | undefined
  /** The address and the port of the API. Port 0 chooses a free one. */
  readonly host: string
  readonly port: number
  /** The settings of API and worker that are set. */
  readonly api: Readonly<Record<string, string>>
  readonly worker: Readonly<Record<string, string>>
}

const ownSettings = {
  SLUICE_DATA_DIR: { type: 'string', description: 'Folder of the data, the logs and local.json.' },
} as const

/** The API gets these from `StartSettings.host` and `port`. */
const ADDRESS: ReadonlySet<string> = new Set(['HOST', 'PORT'])

/** Settings of API and worker that `npm start` determines, because it runs Redis, ClickHouse and both processes itself. */
const DETERMINED: ReadonlySet<string> = new Set([
  'OPS_HOST',
  'OPS_PORT',
  'REDIS_SENTINEL_PASSWORD',
  'REDIS_TLS_CA_FILE',
  'REDIS_URL',
  'SHUTDOWN_DEADLINE_MS',
  'SLUICE_PREFIX',
  ...Object.keys(workerSettings).filter((name) => name.startsWith('CLICKHOUSE_')),
])

/** @throws SettingsError if a setting is invalid, or has no effect here */
export function readStartSettings(environment: Environment): StartSettings {
  const known = { ...apiSettings, ...workerSettings }
  const without = Object.keys(setIn(environment, known)).filter((name) => DETERMINED.has(name))
  if (without.length > 0) {
    throw new SettingsError(
      `npm start runs Redis, ClickHouse, API and worker itself, and cannot use ${without.join(', ')}. ` +
        `Start it without: env ${without.map((name) => `-u ${name}`).join(' ')} npm start. ` +
        'With other servers, run API and worker as docs/containers.md describes.',
    )
  }
  const { SLUICE_DATA_DIR } = readSettings(ownSettings, environment)
  const { HOST, PORT } = readApiConfig(setIn(environment, apiSettings))
  const worker = setIn(environment, workerSettings)
  readWorkerConfig(worker)
  return {
    dataDir: SLUICE_DATA_DIR === undefined ? undefined : resolve(SLUICE_DATA_DIR),
    host: HOST,
    port: PORT,
    api: Object.fromEntries(
      Object.entries(setIn(environment, apiSettings)).filter(([name]) => !ADDRESS.has(name)),
    ),
    worker,
  }
}

/** The settings of a schema that are set. An empty variable counts as not set. */
function setIn(environment: Environment, schema: object): Record<string, string> {
  return Object.fromEntries(
    Object.keys(schema).flatMap((name): [string, string][] => {
      const value = environment[name]
      return value === undefined || value === '' ? [] : [[name, value]]
    }),
  )
}
