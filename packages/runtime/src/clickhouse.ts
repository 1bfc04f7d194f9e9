import { ClickHouseLogLevel, createClient, type ClickHouseClient } from '@clickhouse/client'

export type { ClickHouseClient } from '@clickhouse/client'

export interface ClickHouseAccess {
  readonly url: string
  readonly username: string
  readonly password: string
  readonly database: string
}

/**
 * A client for ClickHouse's HTTP interface.
 *
 * @param requestTimeoutMs how long a request may be silent
 * @param connectionsMax how many requests may be under way at once; more wait
 */
export function connectClickHouse(
  access: ClickHouseAccess,
  { requestTimeoutMs, connectionsMax }: { requestTimeoutMs: number; connectionsMax: number },
): ClickHouseClient {
  return createClient({
    ...access,
    application: 'sluice',
    // What fails is thrown, and logged by whoever catches it; the client's own log would quote rows.
    log: { level: ClickHouseLogLevel.OFF },
    request_timeout: requestTimeoutMs,
    max_open_connections: connectionsMax,
    compression: { request: false, response: false },
    keep_alive: { enabled: true, idle_socket_ttl: 2_000 },
  })
}
