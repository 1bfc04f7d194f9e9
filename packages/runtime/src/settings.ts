import { Ajv } from 'ajv'

/** Thrown when the environment does not make valid settings. The message names each variable, never its value. */
export class SettingsError extends Error {
  override name = 'SettingsError'
}

/** One variable of the environment, as the JSON Schema of its value. Without a default it may be absent. */
export type Setting = { readonly description: string } & (
  | {
      readonly type: 'string'
      readonly default?: string
      readonly enum?: readonly string[]
      readonly pattern?: string
    }
  | {
      readonly type: 'integer'
      readonly default?: number
      readonly minimum?: number
      readonly maximum?: number
    }
  | { readonly type: 'boolean'; readonly default?: boolean }
)

const INTEGER = /^-?\d{1,15}$/

type ValueOf<S extends Setting> = S extends { readonly enum: readonly (infer Choice)[] }
  ? Choice
  : S extends { readonly type: 'integer' }
    ? number
    : S extends { readonly type: 'boolean' }
      ? boolean
      : string

export type SettingsOf<Schema extends Readonly<Record<string, Setting>>> = {
  readonly [Name in keyof Schema]: Schema[Name] extends { readonly default: unknown }
    ? ValueOf<Schema[Name]>
    : ValueOf<Schema[Name]> | undefined
}

/**
 * Reads settings out of the environment: their texts are converted to the types asked for. An empty variable counts as
 * absent.
 *
 * @throws SettingsError
 */
export function readSettings<const Schema extends Readonly<Record<string, Setting>>>(
  schema: Schema,
  environment: Readonly<Record<string, string | undefined>>,
): SettingsOf<Schema> {
  const ajv = new Ajv({ allErrors: true, coerceTypes: true, useDefaults: true, strict: true })
  const validate = ajv.compile<SettingsOf<Schema>>({ type: 'object', properties: schema })
  const settings: unknown = Object.fromEntries(
    Object.entries(schema).flatMap(([name, { type }]) => {
      const value = environment[name]
      if (value === undefined || value === '') return []
      // ajv would take blanks for 0, and Infinity for an integer that no maximum bounds. It refuses an array.
      return [[name, type === 'integer' && !INTEGER.test(value) ? [] : value]]
    }),
  )
  if (validate(settings)) return settings
  const reasons = (validate.errors ?? []).map(
    ({ instancePath, message }) => `${instancePath.slice(1)} ${message ?? 'is invalid'}`,
  )
  throw new SettingsError(`invalid settings: ${reasons.join('; ')}`)
}

/** Settings that every process has. Spread into the properties of its own schema. */
export const commonSettings = {
  LOG_LEVEL: {
    type: 'string',
    enum: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    default: 'info',
    description: 'The least severe level that is logged.',
  },
  OPS_HOST: {
    type: 'string',
    default: '127.0.0.1',
    description: 'Where the ops server (health, later metrics) listens.',
  },
  OPS_PORT: {
    type: 'integer',
    minimum: 0,
    maximum: 65_535,
    default: 0,
    description: "The ops server's port; 0 takes a free one.",
  },
  SHUTDOWN_DEADLINE_MS: {
    type: 'integer',
    minimum: 100,
    maximum: 600_000,
    default: 8_000,
    description:
      'How long a process may take to finish its work after SIGTERM; then it leaves the rest to be recovered.',
  },
} as const

export const redisSettings = {
  REDIS_URL: {
    type: 'string',
    default: 'redis://127.0.0.1:6379',
    description:
      'Redis: `redis://`, `redis-sentinel://` or `redis-cluster://`, with TLS `rediss…`; see docs/scaling.md.',
  },
  REDIS_TLS_CA_FILE: {
    type: 'string',
    description: "A file with the certificates that vouch for Redis' own; without it Node's are believed.",
  },
  REDIS_SENTINEL_PASSWORD: {
    type: 'string',
    description: 'The password that the Sentinels themselves ask for, where they do.',
  },
  QUEUE_SHARDS: {
    type: 'integer',
    minimum: 1,
    // A worker shares what it may hold among the shards: with more, none could hold a batch's worth.
    maximum: 32,
    default: 1,
    description:
      'How many queues the chunks are spread over; the same for all processes. See docs/scaling.md.',
  },
  SLUICE_PREFIX: {
    type: 'string',
    pattern: '^[A-Za-z0-9_.-]{1,64}$',
    default: 'sluice',
    description: 'Sets installations apart that share a Redis.',
  },
} as const

export const clickhouseSettings = {
  CLICKHOUSE_URL: {
    type: 'string',
    default: 'http://127.0.0.1:8123',
    description: "ClickHouse's HTTP interface, as http:// or https://.",
  },
  CLICKHOUSE_TLS_CA_FILE: {
    type: 'string',
    description:
      'A PEM file with the certificate authorities that an https:// ClickHouse is trusted by, in place of those Node knows.',
  },
  CLICKHOUSE_CLUSTER: {
    type: 'string',
    pattern: String.raw`^([A-Za-z0-9_.-]{1,64}|\{[A-Za-z0-9_]{1,62}\})$`,
    description:
      'The cluster that holds the tables, by its name in system.clusters or as a macro like `{cluster}`; a single server without it.',
  },
  CLICKHOUSE_USERNAME: { type: 'string', default: 'default', description: 'The user for ClickHouse.' },
  CLICKHOUSE_PASSWORD: { type: 'string', default: '', description: 'The password for ClickHouse.' },
  CLICKHOUSE_DATABASE: {
    type: 'string',
    pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$',
    default: 'sluice',
    description: 'The database that holds the tables.',
  },
} as const
