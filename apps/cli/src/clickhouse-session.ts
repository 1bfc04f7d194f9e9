import { ClickHouseError } from '@clickhouse/client'
import { type ClickHouseAccess, type ClickHouseClient, connectClickHouse } from '@sluice/runtime'
import { shownUrl } from './connections.ts'
import { CliError, describeNetworkError } from './errors.ts'

/** How long ClickHouse may be silent: a search through all of a big project takes seconds. */
const REQUEST_TIMEOUT_MS = 60_000

/**
 * Opens a connection to ClickHouse for one task, and closes it whatever happens.
 *
 * @throws CliError when ClickHouse cannot be used
 */
export async function withClickHouse<Result>(
  access: ClickHouseAccess,
  task: (client: ClickHouseClient) => Promise<Result>,
): Promise<Result> {
  const client = connectClickHouse(access, { requestTimeoutMs: REQUEST_TIMEOUT_MS, connectionsMax: 1 })
  try {
    return await task(client)
  } catch (error) {
    throw clickhouseProblem(error, access)
  } finally {
    await client.close()
  }
}

/** An error as it is reported: what a person can do something about as a CliError, any other as it is. */
export function clickhouseProblem(error: unknown, access: ClickHouseAccess): unknown {
  const reason = describeClickHouseError(error, access)
  if (reason === undefined) return error
  const isAway = !(error instanceof ClickHouseError) && distrust(error) === undefined
  return new CliError(isAway ? `${reason}; \`npm start\` starts the local services` : reason)
}

/** Codes of ClickHouse for which there is better advice than its own message. */
const UNKNOWN_TABLE = '60'
const UNKNOWN_DATABASE = '81'
const REQUIRED_PASSWORD = '194'
const AUTHENTICATION_FAILED = '516'

/** What went wrong between us and ClickHouse, in one sentence; undefined for errors of another kind. */
export function describeClickHouseError(error: unknown, access: ClickHouseAccess): string | undefined {
  const clickhouse = `ClickHouse at ${shownUrl(access.url)}`
  if (!(error instanceof ClickHouseError)) {
    const code = distrust(error)
    if (code !== undefined) {
      return `${clickhouse} has a certificate that is not trusted (${code}); CLICKHOUSE_TLS_CA_FILE can name the file of its authority`
    }
    const reason = describeNetworkError(error)
    return reason === undefined ? undefined : `${clickhouse} ${reason}`
  }
  switch (error.code) {
    case UNKNOWN_TABLE:
    case UNKNOWN_DATABASE:
      return `${clickhouse} has no tables in the database ${access.database} yet; \`sluice migrate\` makes them`
    case REQUIRED_PASSWORD:
    case AUTHENTICATION_FAILED:
      return `${clickhouse} refuses the user ${access.username}; check CLICKHOUSE_USERNAME and CLICKHOUSE_PASSWORD`
    default:
      return `${clickhouse} refuses: ${error.message.split('\n', 1)[0] ?? ''} (code ${error.code})`
  }
}

/** Node's names for what is wrong with a certificate: https://nodejs.org/api/tls.html#x509-certificate-error-codes */
const CERTIFICATE_CODES = /^(CERT_|DEPTH_ZERO_|ERR_TLS_CERT_|SELF_SIGNED_|UNABLE_TO_)/

/** Why a certificate is not trusted, as Node's code; undefined for errors of another kind. */
function distrust(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) return undefined
  return CERTIFICATE_CODES.test(error.code) ? error.code : undefined
}
