import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type ClickHouseAccess,
  clickhouseAccessFrom,
  clickhouseSettings,
  parseRedisUrl,
  readSettings,
  redisSettings,
  SettingsError,
} from '@sluice/runtime'
import type { Context } from './context.ts'
import { CliError } from './errors.ts'

/** What `npm start` writes of the services it runs. */
export interface LocalServices {
  readonly apiUrl?: string
  readonly apiKey?: string
  readonly projectId?: string
  readonly redisUrl?: string
  readonly clickhouse?: Partial<ClickHouseAccess>
}

export interface RedisAccess {
  readonly url: string
  readonly prefix: string
  readonly tlsCaFile?: string | undefined
  readonly sentinelPassword?: string | undefined
}

export interface ApiAccess {
  /** Of the logs resource itself. */
  readonly url: string
  readonly key: string
}

type Surroundings = Pick<Context, 'environment' | 'dataDirectory'>

/*
 * Each setting comes from a flag, else from the environment, else from local.json. What local.json says of a service
 * holds only for the address that it names: a password or key of the local services never goes elsewhere.
 */

/** The services of `npm start`; empty where it never ran. */
export async function readLocalServices({ dataDirectory }: Surroundings): Promise<LocalServices> {
  const path = join(dataDirectory, 'local.json')
  try {
    const services: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (typeof services === 'object' && services !== null) return services
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new CliError(`${path} is broken; npm start writes it anew`)
}

export async function redisAccess(
  flags: { redisUrl?: string; prefix?: string },
  surroundings: Surroundings,
): Promise<RedisAccess> {
  const { environment } = surroundings
  const url =
    flags.redisUrl ?? present(environment['REDIS_URL']) ?? (await readLocalServices(surroundings)).redisUrl
  if (url === undefined) throw unknownService('Redis', 'REDIS_URL', '--redis-url')
  orExplain(() => parseRedisUrl(url))
  const settings = orExplain(() =>
    readSettings(redisSettings, {
      ...environment,
      REDIS_URL: url,
      SLUICE_PREFIX: flags.prefix ?? environment['SLUICE_PREFIX'],
    }),
  )
  return {
    url,
    prefix: settings.SLUICE_PREFIX,
    tlsCaFile: settings.REDIS_TLS_CA_FILE,
    sentinelPassword: settings.REDIS_SENTINEL_PASSWORD,
  }
}

export async function clickhouseAccess(
  flags: { clickhouseUrl?: string; clickhouseUsername?: string; clickhouseDatabase?: string },
  surroundings: Surroundings,
): Promise<ClickHouseAccess> {
  const { environment } = surroundings
  const { clickhouse: known } = await readLocalServices(surroundings)
  const url = flags.clickhouseUrl ?? present(environment['CLICKHOUSE_URL']) ?? known?.url
  if (url === undefined) throw unknownService('ClickHouse', 'CLICKHOUSE_URL', '--clickhouse-url')
  requireScheme(url, ['http:', 'https:'], 'ClickHouse')
  const local = url === known?.url ? known : undefined
  return orExplain(() =>
    clickhouseAccessFrom(
      readSettings(clickhouseSettings, {
        CLICKHOUSE_URL: url,
        CLICKHOUSE_TLS_CA_FILE: environment['CLICKHOUSE_TLS_CA_FILE'],
        CLICKHOUSE_CLUSTER: environment['CLICKHOUSE_CLUSTER'],
        CLICKHOUSE_USERNAME:
          flags.clickhouseUsername ?? present(environment['CLICKHOUSE_USERNAME']) ?? local?.username,
        CLICKHOUSE_PASSWORD: present(environment['CLICKHOUSE_PASSWORD']) ?? local?.password,
        CLICKHOUSE_DATABASE:
          flags.clickhouseDatabase ?? present(environment['CLICKHOUSE_DATABASE']) ?? local?.database,
      }),
    ),
  )
}

export async function apiAccess(
  flags: { apiUrl?: string; apiKey?: string },
  surroundings: Surroundings,
): Promise<ApiAccess> {
  const { environment } = surroundings
  const known = await readLocalServices(surroundings)
  const url = flags.apiUrl ?? present(environment['SLUICE_API_URL']) ?? known.apiUrl
  if (url === undefined) throw unknownService('API', 'SLUICE_API_URL', '--api-url')
  requireScheme(url, ['http:', 'https:'], 'the API')
  const local = url === known.apiUrl ? known : undefined
  const key = flags.apiKey ?? present(environment['SLUICE_API_KEY']) ?? local?.apiKey
  if (key === undefined) {
    throw new CliError(
      'no API key is known: make one with `sluice keys create`, and set SLUICE_API_KEY or pass --api-key',
    )
  }
  return { url: logsUrl(url), key }
}

/** The logs resource of an API that is named by its host, or by a base address that ends in the version. */
export function logsUrl(apiUrl: string): string {
  const base = apiUrl.replace(/\/+$/, '')
  return base.endsWith('/v1') ? `${base}/logs` : `${base}/v1/logs`
}

/** An address as it may be shown: without user, password and query. */
export function shownUrl(url: string): string {
  // An address of Redis may name several hosts, which no URL object takes.
  const [, scheme = '', hosts = '', path = ''] = /^([^:]*:\/\/)(?:[^/?#]*@)?([^/?#]*)([^?#]*)/.exec(url) ?? []
  return `${scheme}${hosts}${path === '/' ? '' : path}`
}

function present(value: string | undefined): string | undefined {
  return value === '' ? undefined : value
}

function unknownService(service: string, variable: string, flag: string): CliError {
  return new CliError(
    `no ${service} is known: start the local services with \`npm start\`, set ${variable}, or pass ${flag}`,
  )
}

function requireScheme(url: string, schemes: readonly string[], service: string): void {
  if (URL.canParse(url) && schemes.includes(new URL(url).protocol)) return
  // The address itself is not shown: it may hold a password.
  throw new CliError(`the address of ${service} must start with ${schemes.map((s) => `${s}//`).join(' or ')}`)
}

/** Settings that cannot be used are for the person who set them. @throws CliError */
export function orExplain<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    if (error instanceof SettingsError) throw new CliError(error.message)
    throw error
  }
}
