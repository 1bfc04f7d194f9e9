import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ClickHouseAccess, clickhouseAccessFrom, clickhouseSettings } from '@sluice/clickhouse'
import { parseRedisUrl, readSettings, redisSettings, SettingsError } from '@sluice/runtime'
import type { Context } from './context.ts'
import { CliError, describeReadError } from './errors.ts'
import { SLUICE } from './options.ts'

export interface RedisFlags {
  redisUrl?: string
  prefix?: string
}

export interface RedisAccess {
  readonly url: string
  readonly prefix: string
  readonly tlsCaFile?: string | undefined
  readonly sentinelPassword?: string | undefined
  /** How many replicas must have a change on disk. */
  readonly replicas: number
  /** The memory budget of a server without `maxmemory`. */
  readonly memoryBytes: number
}

export interface ClickHouseFlags {
  clickhouseUrl?: string
  clickhouseUsername?: string
  clickhouseDatabase?: string
}

export interface ApiFlags {
  apiUrl?: string
  apiKey?: string
}

export interface ApiAccess {
  /** The address of the logs resource itself. */
  readonly url: string
  readonly key: string
}

type SettingSources = Pick<Context, 'environment' | 'dataDirectory'>

/*
 * Each setting comes from a flag, else from the environment, else from local.json. The credentials in local.json are
 * used only with the address next to them: a password or key of the local services is never sent to another server.
 */

export async function redisAccess(flags: RedisFlags, sources: SettingSources): Promise<RedisAccess> {
  const { environment } = sources
  const url =
    flags.redisUrl ?? nonEmpty(environment['REDIS_URL']) ?? (await readLocalServices(sources)).redisUrl
  if (url === undefined) throw noAddress('Redis', 'REDIS_URL', '--redis-url')
  convertSettingsErrors(() => parseRedisUrl(url))
  const settings = convertSettingsErrors(() =>
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
    replicas: settings.REDIS_REPLICAS_ACK,
    memoryBytes: settings.REDIS_MEMORY_BYTES,
  }
}

/**
 * Whether `redisAccess` finds the Redis with the projects whose rows are in this ClickHouse. The address in local.json counts only with
 * the ClickHouse next to it: another installation has other projects.
 */
export async function hasRegistry(
  flags: RedisFlags,
  clickhouse: Pick<ClickHouseAccess, 'url'>,
  sources: SettingSources,
): Promise<boolean> {
  if ((flags.redisUrl ?? nonEmpty(sources.environment['REDIS_URL'])) !== undefined) return true
  const { redisUrl, clickhouse: known } = await readLocalServices(sources)
  return redisUrl !== undefined && clickhouse.url === known?.url
}

export async function clickhouseAccess(
  flags: ClickHouseFlags,
  sources: SettingSources,
): Promise<ClickHouseAccess> {
  const { environment } = sources
  const { clickhouse: known } = await readLocalServices(sources)
  const url = flags.clickhouseUrl ?? nonEmpty(environment['CLICKHOUSE_URL']) ?? known?.url
  if (url === undefined) throw noAddress('ClickHouse', 'CLICKHOUSE_URL', '--clickhouse-url')
  requireHttpUrl(url, 'ClickHouse')
  const local = url === known?.url ? known : undefined
  return convertSettingsErrors(() =>
    clickhouseAccessFrom(
      readSettings(clickhouseSettings, {
        CLICKHOUSE_URL: url,
        CLICKHOUSE_TLS_CA_FILE: environment['CLICKHOUSE_TLS_CA_FILE'],
        CLICKHOUSE_CLUSTER: environment['CLICKHOUSE_CLUSTER'],
        CLICKHOUSE_USERNAME:
          flags.clickhouseUsername ?? nonEmpty(environment['CLICKHOUSE_USERNAME']) ?? local?.username,
        CLICKHOUSE_PASSWORD: nonEmpty(environment['CLICKHOUSE_PASSWORD']) ?? local?.password,
        CLICKHOUSE_DATABASE:
          flags.clickhouseDatabase ?? nonEmpty(environment['CLICKHOUSE_DATABASE']) ?? local?.database,
      }),
    ),
  )
}

/**
 * The ClickHouse with the tables of the installation that is in this Redis. The address in local.json is used only with the Redis
 * next to it.
 *
 * @throws CliError
 */
export async function tablesAccess(
  flags: ClickHouseFlags,
  redis: Pick<RedisAccess, 'url'>,
  sources: SettingSources,
): Promise<ClickHouseAccess> {
  const { redisUrl } = await readLocalServices(sources)
  const configured = flags.clickhouseUrl ?? nonEmpty(sources.environment['CLICKHOUSE_URL'])
  if (configured === undefined && redis.url !== redisUrl)
    throw noAddress('ClickHouse', 'CLICKHOUSE_URL', '--clickhouse-url')
  return clickhouseAccess(flags, sources)
}

export async function apiAccess(flags: ApiFlags, sources: SettingSources): Promise<ApiAccess> {
  const { environment } = sources
  const known = await readLocalServices(sources)
  const url = flags.apiUrl ?? nonEmpty(environment['SLUICE_API_URL']) ?? known.apiUrl
  if (url === undefined) throw noAddress('API', 'SLUICE_API_URL', '--api-url')
  requireHttpUrl(url, 'the API')
  if (new URL(url).username !== '' || new URL(url).password !== '')
    throw new CliError('the address of the API must not contain a user or a password')
  const local = url === known.apiUrl ? known : undefined
  const key = flags.apiKey ?? nonEmpty(environment['SLUICE_API_KEY']) ?? local?.apiKey
  if (key === undefined) {
    throw new CliError(
      `no API key is configured: create one with \`${SLUICE} keys create\`, and set SLUICE_API_KEY or pass --api-key`,
    )
  }
  return { url: logsUrl(url), key }
}

/** @param apiUrl the address of the API's host, or a base address that ends with the version */
export function logsUrl(apiUrl: string): string {
  const base = apiUrl.replace(/\/+$/, '')
  return base.endsWith('/v1') ? `${base}/logs` : `${base}/v1/logs`
}

/** Invalid settings are reported to the user who set them. @throws CliError */
export function convertSettingsErrors<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    if (error instanceof SettingsError) throw new CliError(error.message, { cause: error })
    throw error
  }
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value
}

function noAddress(service: string, variable: string, flag: string): CliError {
  return new CliError(
    `no ${service} address is configured: start the local services with \`npm start\`, set ${variable}, or pass ${flag}`,
  )
}

function requireHttpUrl(url: string, service: string): void {
  if (URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol)) return
  // The address is not printed: it may contain a password.
  throw new CliError(`the address of ${service} must start with http:// or https://`)
}

/** The content of `local.json`: how to reach the services that `npm start` runs. */
export interface LocalServices {
  readonly apiUrl?: string
  readonly apiKey?: string
  readonly projectId?: string
  readonly redisUrl?: string
  readonly clickhouse?: Partial<ClickHouseAccess>
}

/** @returns an empty object where `npm start` never ran */
export async function readLocalServices({
  dataDirectory,
}: Pick<Context, 'dataDirectory'>): Promise<LocalServices> {
  const path = join(dataDirectory, 'local.json')
  try {
    const services: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (typeof services === 'object' && services !== null) return services
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
    const reason =
      describeReadError(error) ?? (error instanceof Error && 'syscall' in error ? error.message : undefined)
    if (reason !== undefined) {
      throw new CliError(`cannot read ${path}: ${reason}; SLUICE_DATA_DIR selects another folder`, {
        cause: error,
      })
    }
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new CliError(`${path} is not a valid JSON object; \`npm start\` writes a new one`)
}
