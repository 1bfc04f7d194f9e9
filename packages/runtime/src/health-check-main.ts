// A container's health check: `health-check-main.ts PATH`. Asks the ops server of the process beside it, as that one was
// told to listen, and ends with 0 when it answers well. The images have no other program that speaks HTTP.
import { get } from 'node:http'

/** Within the deadline that the image gives the check. */
const DEADLINE_MS = 3_000

const [path = '/livez'] = process.argv.slice(2)
const request = get(
  { host: '127.0.0.1', port: process.env['OPS_PORT'], path, signal: AbortSignal.timeout(DEADLINE_MS) },
  (response) => process.exit(response.statusCode === 200 ? 0 : 1),
)
request.on('error', () => process.exit(1))
