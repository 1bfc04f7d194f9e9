import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ClickHouseAccess, clickhouseAccessFrom, clickhouseSettings } from '@sluice/clickhouse'
import { parseRedisUrl, readSettings, redisSettings, SettingsError } from '@sluice/runtime'
import type { Context } from './context.ts'
import { CliError, throwReadError } from './errors.ts'
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
  const settings = convertSettingsErrors(() => {
    parseRedisUrl(url)
    const prefix = flags.prefix ?? environment['SLUICE_PREFIX']
    return readSettings(redisSettings, { ...environment, REDIS_URL: url, SLUICE_PREFIX: prefix })
  })
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

/** @param redis the ClickHouse with the tables of the installation in this Redis: the address in local.json counts only next to it */
export async function clickhouseAccess(
  flags: ClickHouseFlags,
  sources: SettingSources,
  redis?: Pick<RedisAccess, 'url'>,
): Promise<ClickHouseAccess> {
  const { environment } = sources
  const { clickhouse: known, redisUrl } = await readLocalServices(sources)
  const localUrl = redis === undefined || redis.url === redisUrl ? known?.url : undefined
  const url = flags.clickhouseUrl ?? nonEmpty(environment['CLICKHOUSE_URL']) ?? localUrl
  if (url === undefined) throw noAddress('ClickHouse', 'CLICKHOUSE_URL', '--clickhouse-url')
  requireHttpUrl(url, 'ClickHouse')
  const local = url === known?.url ? known : undefined
  const settingOf = (flag: string | undefined, variable: string, otherwise?: string): string | undefined =>
    flag ?? nonEmpty(environment[variable]) ?? otherwise
  return convertSettingsErrors(() =>
    clickhouseAccessFrom(
      readSettings(clickhouseSettings, {
        CLICKHOUSE_URL: url,
        CLICKHOUSE_TLS_CA_FILE: environment['CLICKHOUSE_TLS_CA_FILE'],
        CLICKHOUSE_CLUSTER: environment['CLICKHOUSE_CLUSTER'],
        CLICKHOUSE_USERNAME: settingOf(flags.clickhouseUsername, 'CLICKHOUSE_USERNAME', local?.username),
        CLICKHOUSE_PASSWORD: settingOf(undefined, 'CLICKHOUSE_PASSWORD', local?.password),
        CLICKHOUSE_DATABASE: settingOf(flags.clickhouseDatabase, 'CLICKHOUSE_DATABASE', local?.database),
      }),
    ),
  )
}

export async function apiAccess(flags: ApiFlags, sources: SettingSources): Promise<ApiAccess> {
  const { environment } = sources
  const known = await readLocalServices(sources)
  const url = flags.apiUrl ?? nonEmpty(environment['SLUICE_API_URL']) ?? known.apiUrl
  if (url === undefined) throw noAddress('API', 'SLUICE_API_URL', '--api-url')
  requireHttpUrl(url, 'the API')
  if (new URL(url).username !== '' || new URL(url).password !== '')
    throw new CliError('the address of the API must not contain a user or a password')
  const localKey = url === known.apiUrl ? known.apiKey : undefined
  const key = flags.apiKey ?? nonEmpty(environment['SLUICE_API_KEY']) ?? localKey
  if (key === undefined) {
    throw new CliError(
      `no API key is configured: create one with \`${SLUICE} keys create\`, and set SLUICE_API_KEY or pass --api-key`,
    )
  }
  // The address is the one of the host, or a base address that ends with the version.
  return { url: `${url.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1/logs`, key }
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
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '{}'
    return throwReadError(path)(error)
  })
  try {
    const services: unknown = JSON.parse(text)
    if (typeof services === 'object' && services !== null) return services
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new CliError(`${path} is not a valid JSON object; \`npm start\` writes a new one`)
}
