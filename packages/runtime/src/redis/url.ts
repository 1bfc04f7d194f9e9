import { SettingsError } from '../settings.ts'

export interface RedisNode {
  readonly host: string
  readonly port: number
}

/** Where Redis is, and the credentials for it. */
export type RedisAddress = {
  readonly tls: boolean
  /** Absent when Redis requires none. A password without a user name belongs to the Redis user `default`. */
  readonly username?: string
  readonly password?: string
  /** At least one: the server, the Sentinels, or some nodes of the cluster, from which the others are discovered. */
  readonly nodes: readonly [RedisNode, ...RedisNode[]]
} & (
  | { readonly kind: 'single'; readonly db: number }
  | { readonly kind: 'sentinel'; readonly masterName: string; readonly db: number }
  | { readonly kind: 'cluster' }
)

const PORT = 6379
const SENTINEL_PORT = 26379

const SCHEME = /^redis(s)?(?:-(sentinel|cluster))?$/

/** User and password, hosts, path. In a password, all characters with a meaning in a URL are percent-encoded. */
const AFTER_SCHEME = /^(?:([^/?#@]*)@)?([^/?#@]*)(?:\/([^?#@]*))?$/
const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+))(?::(\d{1,5}))?$/
const DB = /^\d{1,4}$/

/**
 * Parses the URL of a Redis:
 *
 * - `redis://[[user]:password@]host[:port][/db]`: one server
 * - `redis-sentinel://[[user]:password@]host[:port],…/master-name[/db]`: the Sentinels that monitor the master
 * - `redis-cluster://[[user]:password@]host[:port],…`: some nodes of a Redis Cluster
 *
 * With `rediss` instead of `redis`, each of them uses TLS.
 *
 * @throws SettingsError with the reason. It quotes no part of the URL: an invalid URL may contain a password anywhere
 */
export function parseRedisUrl(url: string): RedisAddress {
  const [scheme = '', rest] = url.split('://', 2)
  const matched = SCHEME.exec(scheme)
  if (matched === null || rest === undefined)
    throw invalid('must start with redis:// or rediss://, redis-sentinel://, redis-cluster://')
  const tls = matched[1] !== undefined
  const kind = (matched[2] ?? 'single') as RedisAddress['kind']
  const [, user, hosts, path = ''] = AFTER_SCHEME.exec(url.slice(scheme.length + 3)) ?? []
  if (hosts === undefined)
    throw invalid(
      'must not contain ? or #; in user and password, `/`, `?`, `#` and `@` must be percent-encoded',
    )
  const [first, ...others] = hosts.split(',').map((host) => parseHost(host, kind))
  if (first === undefined) throw invalid('has no host')
  const common = { tls, ...parseUser(user), nodes: [first, ...others] } as const
  if (kind === 'cluster') {
    if (parseDb(path) !== 0) throw invalid('names a database, but a Redis Cluster has only database 0')
    return { ...common, kind }
  }
  if (kind === 'single') {
    if (others.length > 0)
      throw invalid('names several hosts, which only redis-sentinel:// and redis-cluster:// allow')
    return { ...common, kind, db: parseDb(path) }
  }
  const [masterName = '', db = '', ...more] = path.split('/').map(decode)
  if (masterName === '' || more.length > 0)
    throw invalid('must end with the name of the master at the Sentinels: redis-sentinel://…/NAME[/DB]')
  return { ...common, kind, masterName, db: parseDb(db) }
}

function parseHost(text: string, kind: RedisAddress['kind']): RedisNode {
  const [, ipv6, name, digits] = HOST.exec(text) ?? []
  const host = ipv6 ?? name
  const port = digits === undefined ? (kind === 'sentinel' ? SENTINEL_PORT : PORT) : Number(digits)
  if (host === undefined || port < 1 || port > 65_535)
    throw invalid('must name each host as HOST or HOST:PORT, with IPv6 addresses in brackets')
  return { host, port }
}

function parseUser(text: string | undefined): { username?: string; password?: string } {
  if (text === undefined) return {}
  const [, username = '', password = ''] = /^([^:]*):(.+)$/.exec(text) ?? []
  if (password === '') throw invalid('must have user and password as USER:PASSWORD@ or :PASSWORD@')
  return { ...(username === '' ? {} : { username: decode(username) }), password: decode(password) }
}

function parseDb(text: string): number {
  if (text === '') return 0
  if (!DB.test(text)) throw invalid('must name the database by its number')
  return Number(text)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid('contains a % that does not start a percent-encoded character; write % as %25')
  }
}

function invalid(reason: string): SettingsError {
  return new SettingsError(`the Redis URL ${reason}`)
}
