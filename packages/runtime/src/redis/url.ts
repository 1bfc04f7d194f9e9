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

/** Scheme, user and password, hosts, path. In a password, all characters with a meaning in a URL are percent-encoded. */
const FORM = /^redis(s)?(?:-(sentinel|cluster))?:\/\/(?:([^:/?#@]*):([^/?#@]+)@)?([^/?#@]+)(?:\/([^?#@]*))?$/
const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+))(?::(\d{1,5}))?$/
const DB_PATH = /^()(\d{0,4})$/
const SENTINEL_PATH = /^([^/]+)(?:\/(\d{0,4}))?$/

/**
 * Parses the URL of a Redis:
 *
 * - `redis://[[user]:password@]host[:port][/db]`: one server
 * - `redis-sentinel://[[user]:password@]host[:port],…/master-name[/db]`: the Sentinels that monitor the master
 * - `redis-cluster://[[user]:password@]host[:port],…`: some nodes of a Redis Cluster
 *
 * With `rediss` instead of `redis`, each of them uses TLS.
 *
 * @throws SettingsError with these forms. It quotes no part of the URL: an invalid URL may contain a password anywhere
 */
export function parseRedisUrl(url: string): RedisAddress {
  const [, tls, kind = 'single', user = '', password, hosts = '', path = ''] = FORM.exec(url) ?? []
  const port = kind === 'sentinel' ? SENTINEL_PORT : PORT
  const [first, ...others] = hosts.split(',').map((host) => parseHost(host, port))
  const [pathRead, masterName = '', db] = (kind === 'sentinel' ? SENTINEL_PATH : DB_PATH).exec(path) ?? []
  if (first === undefined || pathRead === undefined) throw invalid()
  const common = {
    tls: tls !== undefined,
    ...(user === '' ? {} : { username: decode(user) }),
    ...(password === undefined ? {} : { password: decode(password) }),
    nodes: [first, ...others],
  } as const
  if (kind === 'sentinel') return { ...common, kind, masterName: decode(masterName), db: Number(db ?? 0) }
  if (kind === 'single' && others.length === 0) return { ...common, kind, db: Number(db) }
  // A Redis Cluster has one database.
  if (kind === 'cluster' && Number(db) === 0) return { ...common, kind }
  throw invalid()
}

function parseHost(text: string, usualPort: number): RedisNode {
  const [, ipv6, name, digits = usualPort] = HOST.exec(text) ?? []
  const [host, port] = [ipv6 ?? name, Number(digits)]
  if (host === undefined || port < 1 || port > 65_535) throw invalid()
  return { host, port }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid()
  }
}

function invalid(): SettingsError {
  return new SettingsError(
    'the Redis URL must be redis://HOST[:PORT][/DB], redis-sentinel://HOST[:PORT],…/MASTER[/DB] or redis-cluster://HOST[:PORT],…, with USER:PASSWORD@ or :PASSWORD@ before the hosts if needed; with TLS it starts with rediss; write special characters percent-encoded, % as %25',
  )
}
