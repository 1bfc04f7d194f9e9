import {
  type ClickHouseAccess,
  type ClickHouseClient,
  ClickHouseError,
  connectClickHouse,
} from '@sluice/clickhouse'
import { CliError, codeOf, describeNetworkError } from './errors.ts'
import { SLUICE } from './options.ts'
import { redactUrl } from './terminal.ts'

/** A search through all rows of a big project takes seconds. */
const REQUEST_TIMEOUT_MS = 60_000

/** Opens a connection to ClickHouse for one task, and closes it in any case. @throws CliError when ClickHouse is unavailable */
export async function withClickHouse<Result>(
  access: ClickHouseAccess,
  task: (client: ClickHouseClient) => Promise<Result>,
  requestTimeoutMs = REQUEST_TIMEOUT_MS,
): Promise<Result> {
  const client = connectClickHouse(access, { requestTimeoutMs, connectionsMax: 1 })
  try {
    return await task(client)
  } catch (error) {
    throw toCliError(error, access)
  } finally {
    await client.close()
  }
}

/** Converts failures of ClickHouse into errors for the user. Returns any other error unchanged. */
export function toCliError(error: unknown, access: ClickHouseAccess): unknown {
  const reason = describeClickHouseError(error, access)
  if (reason === undefined) return error
  const isUnavailable = !(error instanceof ClickHouseError) && !CERTIFICATE_CODES.test(codeOf(error))
  const advice = isUnavailable ? '; `npm start` starts the local services' : ''
  return new CliError(`${reason}${advice}`, { cause: error })
}

/** Node's codes for certificates that are not trusted: https://nodejs.org/api/tls.html#x509-certificate-error-codes */
const CERTIFICATE_CODES = /^(CERT_|DEPTH_ZERO_|ERR_TLS_CERT_|SELF_SIGNED_|UNABLE_TO_)/

function describeClickHouseError(error: unknown, access: ClickHouseAccess): string | undefined {
  const clickhouse = `ClickHouse at ${redactUrl(access.url)}`
  const code = codeOf(error)
  if (!(error instanceof ClickHouseError)) {
    if (CERTIFICATE_CODES.test(code))
      return `${clickhouse} has a certificate that is not trusted (${code}); CLICKHOUSE_TLS_CA_FILE can name the file of its authority`
    const reason = describeNetworkError(error)
    return reason === undefined ? undefined : `${clickhouse} ${reason}`
  }
  // UNKNOWN_TABLE and UNKNOWN_DATABASE.
  if (code === '60' || code === '81')
    return `${clickhouse} has no tables in the database ${access.database} yet; \`${SLUICE} migrate\` creates them`
  // REQUIRED_PASSWORD and AUTHENTICATION_FAILED.
  if (code === '194' || code === '516')
    return `${clickhouse} rejects the user ${access.username}; check CLICKHOUSE_USERNAME and CLICKHOUSE_PASSWORD`
  return `${clickhouse} returned an error: ${error.message.split('\n', 1)[0] ?? ''} (code ${code})`
}
