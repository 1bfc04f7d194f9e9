import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { readCertificates, SettingsError, type SettingsOf, stringSetting } from '@sluice/runtime'

export type { ClickHouseClient } from '@clickhouse/client'

export const clickhouseSettings = {
  CLICKHOUSE_URL: stringSetting(
    { default: 'http://127.0.0.1:8123' },
    "The URL of ClickHouse's HTTP interface, with `http://` or `https://`.",
  ),
  CLICKHOUSE_TLS_CA_FILE: stringSetting(
    {},
    'A PEM file with the certificate authorities trusted for an `https://` URL. By default, those of Node.js.',
  ),
  CLICKHOUSE_CLUSTER: stringSetting(
    { pattern: String.raw`^([A-Za-z0-9_.-]{1,64}|\{[A-Za-z0-9_]{1,62}\})$` },
    'The ClickHouse cluster that has the tables, by its name in `system.clusters` or as a macro like `{cluster}`. Not set: a single server.',
  ),
  CLICKHOUSE_USERNAME: stringSetting({ default: 'default' }, 'The ClickHouse user.'),
  CLICKHOUSE_PASSWORD: stringSetting({ default: '' }, 'The password of the ClickHouse user.'),
  CLICKHOUSE_DATABASE: stringSetting(
    { pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$', default: 'sluice' },
    'The database that has the tables.',
  ),
} as const

export interface ClickHouseAccess {
  readonly url: string
  readonly username: string
  readonly password: string
  readonly database: string
  /** The cluster that has the tables, by name or as a macro in braces. Undefined for a single server. */
  readonly cluster?: string
  /** Trusted certificate authorities, as PEM. Undefined for the defaults of Node.js. */
  readonly tlsCa?: string
}

/**
 * Makes the access from the settings. Reads the certificate file.
 *
 * @throws SettingsError
 */
export function clickhouseAccessFrom(settings: SettingsOf<typeof clickhouseSettings>): ClickHouseAccess {
  const { CLICKHOUSE_URL: url, CLICKHOUSE_CLUSTER: cluster, CLICKHOUSE_TLS_CA_FILE: caFile } = settings
  if (!URL.canParse(url) || !/^https?:\/\//i.test(url))
    throw new SettingsError('CLICKHOUSE_URL must start with http:// or https://')
  // Without this check the operator would believe that the connection is encrypted.
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
 * Creates a client for ClickHouse's HTTP interface.
 *
 * @param requestTimeoutMs the longest silence of a request
 * @param connectionsMax the number of requests in flight; further requests wait
 * @param reusesConnections whether a connection is used for more than one request
 */
export function connectClickHouse(
  { url, username, password, database, cluster, tlsCa }: ClickHouseAccess,
  {
    requestTimeoutMs,
    connectionsMax,
    reusesConnections = true,
  }: { requestTimeoutMs: number; connectionsMax: number; reusesConnections?: boolean },
): ClickHouseClient {
  return createClient({
    url,
    username,
    password,
    database,
    application: 'sluice',
    // Errors are thrown, and logged by the caller. The client's own log would quote rows.
    log: { level: ClickHouseLogLevel.OFF },
    request_timeout: requestTimeoutMs,
    max_open_connections: connectionsMax,
    compression: { request: false, response: false },
    keep_alive: { enabled: reusesConnections, idle_socket_ttl: 2_000 },
    ...(tlsCa !== undefined && { tls: { ca_cert: Buffer.from(tlsCa) } }),
    // Data that only one replica has would be lost with it.
    ...(cluster !== undefined && { clickhouse_settings: quorumSettings(requestTimeoutMs) }),
  })
}

/** @param requestTimeoutMs ClickHouse gives up well before it, so that its response contains the reason */
export function quorumSettings(requestTimeoutMs: number) {
  return {
    // The majority of all replicas, including those that are unavailable.
    insert_quorum: 'auto',
    // Without it, ClickHouse rejects an insert while another one waits for its quorum.
    insert_quorum_parallel: 1,
    insert_quorum_timeout: Math.floor(requestTimeoutMs / 2),
  } as const
}

/** Runs a query that returns rows. */
export async function readRows<Row>(
  client: Pick<ClickHouseClient, 'query'>,
  query: string,
  parameters: Record<string, unknown> = {},
): Promise<Row[]> {
  const result = await client.query({ query, query_params: parameters, format: 'JSONEachRow' })
  return result.json<Row>()
}
