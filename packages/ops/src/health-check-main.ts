// The health check of a container: `health-check-main.ts PATH`. It requests PATH from the ops server of the container's
// main process, on the port in OPS_PORT, and exits with 0 if the status is 200. The images contain no other HTTP client.
import { get } from 'node:http'

/** Shorter than the timeout that the image sets for the check. */
const DEADLINE_MS = 3_000

const [path = '/livez'] = process.argv.slice(2)
const request = get(
  { host: '127.0.0.1', port: process.env['OPS_PORT'], path, signal: AbortSignal.timeout(DEADLINE_MS) },
  (response) => process.exit(response.statusCode === 200 ? 0 : 1),
)
request.on('error', () => process.exit(1))
