import { SettingsError } from './settings.ts'

export interface RedisNode {
  readonly host: string
  readonly port: number
}

/** Where Redis is, and who we are to it. */
export type RedisAddress = {
  readonly tls: boolean
  /** Absent where Redis asks for none; a password without a user is that of Redis' user `default`. */
  readonly username?: string
  readonly password?: string
  /** At least one: the server, the Sentinels, or nodes of the cluster that know the others. */
  readonly nodes: readonly [RedisNode, ...RedisNode[]]
} & (
  | { readonly kind: 'single'; readonly db: number }
  | { readonly kind: 'sentinel'; readonly masterName: string; readonly db: number }
  | { readonly kind: 'cluster' }
)

const PORT = 6379
const SENTINEL_PORT = 26379

const schemes: ReadonlyMap<string, { kind: RedisAddress['kind']; tls: boolean }> = new Map([
  ['redis', { kind: 'single', tls: false }],
  ['rediss', { kind: 'single', tls: true }],
  ['redis-sentinel', { kind: 'sentinel', tls: false }],
  ['rediss-sentinel', { kind: 'sentinel', tls: true }],
  ['redis-cluster', { kind: 'cluster', tls: false }],
  ['rediss-cluster', { kind: 'cluster', tls: true }],
])

/** User and password, hosts, path. What would stand for itself elsewhere in a URL is percent-encoded in a password. */
const AFTER_SCHEME = /^(?:([^/?#@]*)@)?([^/?#@]*)(?:\/([^?#@]*))?$/
const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+))(?::(\d{1,5}))?$/
const DB = /^\d{1,4}$/

/**
 * Reads an address of Redis:
 *
 * - `redis://[[user]:password@]host[:port][/db]`: one server
 * - `redis-sentinel://[[user]:password@]host[:port],…/master-name[/db]`: the Sentinels that know the master
 * - `redis-cluster://[[user]:password@]host[:port],…`: some nodes of a Redis Cluster
 *
 * `rediss` in place of `redis` in each: with TLS.
 *
 * @throws SettingsError that says what is wrong, and quotes nothing: a password may stand anywhere in a wrong address
 */
export function parseRedisUrl(url: string): RedisAddress {
  const [scheme = '', rest] = url.split('://', 2)
  const { kind, tls } = schemes.get(scheme) ?? {}
  if (kind === undefined || tls === undefined || rest === undefined) {
    throw wrong('must start with redis:// or rediss://, redis-sentinel://, redis-cluster://')
  }
  const [, user, hosts, path = ''] = AFTER_SCHEME.exec(url.slice(scheme.length + 3)) ?? []
  if (hosts === undefined) {
    throw wrong('takes no ? and no #, and in user and password `/`, `?`, `#` and `@` must be percent-encoded')
  }
  const [first, ...others] = hosts.split(',').map((host) => parseHost(host, kind))
  if (first === undefined) throw wrong('has no host')
  const common = { tls, ...parseUser(user), nodes: [first, ...others] } as const
  if (kind === 'cluster') {
    if (parseDb(path) !== 0) throw wrong('names a database, but a Redis Cluster has none but 0')
    return { ...common, kind }
  }
  if (kind === 'single') {
    if (others.length > 0) {
      throw wrong('names several hosts, as only redis-sentinel:// and redis-cluster:// may')
    }
    return { ...common, kind, db: parseDb(path) }
  }
  const [masterName = '', db = '', ...more] = path.split('/').map(decode)
  if (masterName === '' || more.length > 0) {
    throw wrong('must end in the name that the Sentinels know the master by: redis-sentinel://…/NAME[/DB]')
  }
  return { ...common, kind, masterName, db: parseDb(db) }
}

function parseHost(text: string, kind: RedisAddress['kind']): RedisNode {
  const [, ipv6, name, digits] = HOST.exec(text) ?? []
  const host = ipv6 ?? name
  const port = digits === undefined ? (kind === 'sentinel' ? SENTINEL_PORT : PORT) : Number(digits)
  if (host === undefined || port < 1 || port > 65_535) {
    throw wrong('must name each host as HOST or HOST:PORT, an IPv6 address in brackets')
  }
  return { host, port }
}

function parseUser(text: string | undefined): { username?: string; password?: string } {
  if (text === undefined) return {}
  const [, username = '', password = ''] = /^([^:]*):(.+)$/.exec(text) ?? []
  if (password === '') throw wrong('must have user and password as USER:PASSWORD@ or :PASSWORD@')
  return { ...(username === '' ? {} : { username: decode(username) }), password: decode(password) }
}

function parseDb(text: string): number {
  if (text === '') return 0
  if (!DB.test(text)) throw wrong('must name the database by its number')
  return Number(text)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw wrong('has a % that is not the start of a percent-encoded character; % itself is %25')
  }
}

function wrong(reason: string): SettingsError {
  return new SettingsError(`the address of Redis ${reason}`)
}
