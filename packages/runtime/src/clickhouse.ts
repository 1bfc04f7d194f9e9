import { ClickHouseLogLevel, createClient, type ClickHouseClient } from '@clickhouse/client'
import { readCertificates } from './certificates.ts'
import { type clickhouseSettings, SettingsError, type SettingsOf } from './settings.ts'

export type { ClickHouseClient } from '@clickhouse/client'

export interface ClickHouseAccess {
  readonly url: string
  readonly username: string
  readonly password: string
  readonly database: string
  /** The cluster that holds the tables, by name or as a macro in braces; a single server without it. */
  readonly cluster?: string
  /** Certificates of authorities, as PEM: only who they vouch for is trusted. Those that Node knows without it. */
  readonly tlsCa?: string
}

/**
 * The access that the settings describe. Reads the file with the certificates.
 *
 * @throws SettingsError
 */
export function clickhouseAccessFrom(settings: SettingsOf<typeof clickhouseSettings>): ClickHouseAccess {
  const { CLICKHOUSE_URL: url, CLICKHOUSE_CLUSTER: cluster, CLICKHOUSE_TLS_CA_FILE: caFile } = settings
  // It would leave the connection less protected than somebody meant it to be.
  if (caFile !== undefined && !url.startsWith('https://'))
    throw new SettingsError('CLICKHOUSE_TLS_CA_FILE needs an https:// address')
  return {
    url,
    username: settings.CLICKHOUSE_USERNAME,
    password: settings.CLICKHOUSE_PASSWORD,
    database: settings.CLICKHOUSE_DATABASE,
    ...(cluster !== undefined && { cluster }),
    ...(caFile !== undefined && { tlsCa: readCertificates('CLICKHOUSE_TLS_CA_FILE', caFile) }),
  }
}

/**
 * A client for ClickHouse's HTTP interface.
 *
 * On a cluster an insert is confirmed once most replicas have it: what a single one confirmed would be lost with it.
 *
 * @param requestTimeoutMs how long a request may be silent
 * @param connectionsMax how many requests may be under way at once; more wait
 */
export function connectClickHouse(
  { url, username, password, database, cluster, tlsCa }: ClickHouseAccess,
  { requestTimeoutMs, connectionsMax }: { requestTimeoutMs: number; connectionsMax: number },
): ClickHouseClient {
  return createClient({
    url,
    username,
    password,
    database,
    application: 'sluice',
    // What fails is thrown, and logged by whoever catches it; the client's own log would quote rows.
    log: { level: ClickHouseLogLevel.OFF },
    request_timeout: requestTimeoutMs,
    max_open_connections: connectionsMax,
    compression: { request: false, response: false },
    keep_alive: { enabled: true, idle_socket_ttl: 2_000 },
    ...(tlsCa !== undefined && { tls: { ca_cert: Buffer.from(tlsCa) } }),
    ...(cluster !== undefined && { clickhouse_settings: quorumSettings(requestTimeoutMs) }),
  })
}

/** @param requestTimeoutMs ClickHouse gives up well before, so that its answer says why. */
export function quorumSettings(requestTimeoutMs: number) {
  return {
    // Most of the replicas there are, those that are down included.
    insert_quorum: 'auto',
    // Without it an insert that comes while another waits for its quorum is refused.
    insert_quorum_parallel: 1,
    insert_quorum_timeout: Math.floor(requestTimeoutMs / 2),
  } as const
}
