import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ClickHouseAccess, clickhouseAccessFrom, clickhouseSettings } from '@sluice/clickhouse'
import { parseRedisUrl, readSettings, redisSettings } from '@sluice/runtime'
import type { Context } from './context.ts'
import { CliError, codeOf, throwReadError } from './errors.ts'
import { SLUICE } from './options.ts'

type ClickHouseFlag = 'clickhouseUrl' | 'clickhouseUsername' | 'clickhouseDatabase'
/** The connection options of the services that a command uses. */
export type Flags = Partial<
  Record<'redisUrl' | 'prefix' | 'apiUrl' | 'apiKey' | 'queryUrl' | ClickHouseFlag, string>
>

export type RedisAccess = Readonly<Awaited<ReturnType<typeof redisAccess>>>
export type HttpAccess = Readonly<Awaited<ReturnType<typeof httpAccess>>>

type SettingSources = Pick<Context, 'environment' | 'dataDirectory'>

// Each setting comes from a flag, else from the environment, else from local.json. The credentials in local.json are used only with the
// address next to them: a password or key of the local services is never sent to another server.

export async function redisAccess(flags: Flags, sources: SettingSources) {
  const { environment } = sources
  const given = flags.redisUrl || environment['REDIS_URL'] || (await readLocalServices(sources)).redisUrl
  const url = given ?? noAddress('Redis', 'REDIS_URL', '--redis-url')
  const prefix = flags.prefix ?? environment['SLUICE_PREFIX']
  parseRedisUrl(url)
  const settings = readSettings(redisSettings, { ...environment, REDIS_URL: url, SLUICE_PREFIX: prefix })
  return {
    url,
    prefix: settings.SLUICE_PREFIX,
    tlsCaFile: settings.REDIS_TLS_CA_FILE,
    sentinelPassword: settings.REDIS_SENTINEL_PASSWORD,
    replicas: settings.REDIS_REPLICAS_ACK,
    memoryBytes: settings.REDIS_MEMORY_BYTES,
  }
}

/** @param redis of the same installation. The address in local.json counts only with the Redis next to it: others have other tables */
export async function clickhouseAccess(
  flags: Flags,
  sources: SettingSources,
  redis?: Pick<RedisAccess, 'url'>,
): Promise<ClickHouseAccess> {
  const { environment } = sources
  const { clickhouse: known, redisUrl } = await readLocalServices(sources)
  const localUrl = redis === undefined || redis.url === redisUrl ? known?.url : undefined
  const given = flags.clickhouseUrl || environment['CLICKHOUSE_URL'] || localUrl
  const url = given ?? noAddress('ClickHouse', 'CLICKHOUSE_URL', '--clickhouse-url')
  const local = url === known?.url ? known : undefined
  const settings = {
    ...environment,
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USERNAME: flags.clickhouseUsername ?? (environment['CLICKHOUSE_USERNAME'] || local?.username),
    CLICKHOUSE_PASSWORD: environment['CLICKHOUSE_PASSWORD'] || local?.password,
    CLICKHOUSE_DATABASE: flags.clickhouseDatabase ?? (environment['CLICKHOUSE_DATABASE'] || local?.database),
  }
  return clickhouseAccessFrom(readSettings(clickhouseSettings, settings))
}

const httpServices = {
  api: ['API', 'apiUrl', 'SLUICE_API_URL', '--api-url', 'apiKey', 'SLUICE_API_KEY', 'ingest'],
  query: ['query API', 'queryUrl', 'SLUICE_QUERY_URL', '--query-url', 'readKey', 'SLUICE_READ_KEY', 'read'],
} as const

/** The address of the API that takes entries, or of the one that answers queries, with a key. */
export async function httpAccess(
  service: keyof typeof httpServices,
  flags: Flags & { readonly readKey?: undefined },
  sources: SettingSources,
) {
  const { environment } = sources
  const [name, urlFlag, urlVariable, urlOption, keyFlag, keyVariable, scope] = httpServices[service]
  const known = await readLocalServices(sources)
  const given = flags[urlFlag] || environment[urlVariable] || known[urlFlag]
  const url = given || noAddress(name, urlVariable, urlOption)
  // The address is not printed: it may contain a password.
  const { protocol = '', username = '', password = '' } = URL.parse(url) ?? {}
  if (!/^https?:$/.test(protocol))
    throw new CliError(`the address of the ${name} must start with http:// or https://`)
  if (username + password !== '')
    throw new CliError(`the address of the ${name} must not contain a user or a password`)
  const key =
    flags[keyFlag] ?? (environment[keyVariable] || (url === known[urlFlag] ? known[keyFlag] : undefined))
  if (key) return { url: url.replace(/\/+$/, ''), key }
  const create = `${SLUICE} keys create --scope ${scope}`
  throw new CliError(
    `no key of the ${name} is configured: create one with \`${create}\`, and set ${keyVariable}`,
  )
}

function noAddress(service: string, variable: string, flag: string): never {
  throw new CliError(
    `no ${service} address is configured: start the local services with \`npm start\`, set ${variable}, or pass ${flag}`,
  )
}

interface LocalServices extends Partial<
  Record<'apiUrl' | 'apiKey' | 'queryUrl' | 'readKey' | 'redisUrl', string>
> {
  readonly clickhouse?: Partial<ClickHouseAccess>
}

export async function readLocalServices({
  dataDirectory,
}: Pick<Context, 'dataDirectory'>): Promise<LocalServices> {
  const path = join(dataDirectory, 'local.json')
  const json = await readFile(path, 'utf8').catch((error: unknown) =>
    codeOf(error) === 'ENOENT' ? '{}' : throwReadError(path)(error),
  )
  try {
    const services: unknown = JSON.parse(json)
    if (typeof services === 'object' && services !== null) return services
  } catch {
    // Reported below.
  }
  throw new CliError(`${path} is not a valid JSON object; \`npm start\` writes a new one`)
}
