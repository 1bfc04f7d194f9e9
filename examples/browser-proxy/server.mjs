// Serves a page that logs, and adds the API key to its requests: the key never leaves this process.
//
//   SLUICE_API_URL=http://127.0.0.1:3000 SLUICE_API_KEY=slk_… ORIGIN=http://localhost:8080 node server.mjs
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'

const { SLUICE_API_URL, SLUICE_API_KEY, ORIGIN = 'http://localhost:8080' } = process.env
if (!SLUICE_API_URL || !SLUICE_API_KEY) throw new Error('set SLUICE_API_URL and SLUICE_API_KEY')
const logsUrl = `${SLUICE_API_URL.replace(/\/+$/, '')}/v1/logs`

/** More than the largest entry has. Requests of several entries have at most 256 KiB. */
const BODY_BYTES_MAX = 1024 * 1024
const REQUESTS_PER_MINUTE_MAX = 60
/** The API answers within 2 s. */
const API_TIMEOUT_MS = 10_000

const server = createServer((request, response) => {
  handle(request, response).catch((error) => {
    console.error(error)
    if (!response.headersSent) answer(response, 502, 'The log service is not available.')
  })
})
server.listen(Number(new URL(ORIGIN).port || 80), () => console.log(`listening at ${ORIGIN}`))

async function handle(request, response) {
  const { pathname } = new URL(request.url ?? '/', ORIGIN)
  if (request.method === 'POST' && pathname === '/v1/logs') return forward(request, response)
  if (request.method !== 'GET') return answer(response, 405, 'Only GET, and POST to /v1/logs.')
  if (pathname === '/') return sendFile(response, new URL('public/index.html', import.meta.url), 'text/html')
  // A real application bundles the client into its own script.
  const [, module] = /^\/client\/((?:[\w-]+\/)*[\w-]+\.js)$/.exec(pathname) ?? []
  if (module === undefined) return answer(response, 404, 'There is no such page.')
  await sendFile(response, new URL(module, import.meta.resolve('@sluice/client')), 'text/javascript')
}

async function forward(request, response) {
  // An application checks the session of its user here. Without a login, the origin and a limit keep strangers from filling the project.
  if (request.headers.origin !== ORIGIN) return answer(response, 403, 'The request is not from this site.')
  if (isTooFast(request.socket.remoteAddress))
    return answer(response, 429, 'Too many requests.', { 'retry-after': '60' })
  const body = await readBody(request)
  if (body === undefined) return answer(response, 413, 'The body is too large.')
  const apiResponse = await fetch(logsUrl, {
    method: 'POST',
    // The body is forwarded unchanged, so that the idempotency key belongs to it.
    headers: {
      ...pick(request.headers, ['content-type', 'content-encoding', 'idempotency-key']),
      authorization: `Bearer ${SLUICE_API_KEY}`,
    },
    body,
    signal: AbortSignal.timeout(API_TIMEOUT_MS),
  })
  const { status } = apiResponse
  // A wrong key is a problem of this server, and not of the page.
  if ([401, 403, 404].includes(status)) throw new Error(`the log service rejects SLUICE_API_KEY (${status})`)
  const headers = pick(Object.fromEntries(apiResponse.headers), ['content-type', 'retry-after'])
  response.writeHead(status, headers).end(await apiResponse.text())
}

/** @returns undefined if the body is too large */
async function readBody(request) {
  const pieces = []
  let bytes = 0
  for await (const piece of request) {
    bytes += piece.length
    if (bytes <= BODY_BYTES_MAX) pieces.push(piece)
  }
  return bytes <= BODY_BYTES_MAX ? Buffer.concat(pieces) : undefined
}

/** The requests of each address in the current minute. */
const requests = new Map()
setInterval(() => requests.clear(), 60_000).unref()

function isTooFast(address) {
  const count = (requests.get(address) ?? 0) + 1
  requests.set(address, count)
  return count > REQUESTS_PER_MINUTE_MAX
}

function pick(headers, names) {
  return Object.fromEntries(
    names.filter((name) => headers[name] !== undefined).map((name) => [name, headers[name]]),
  )
}

async function sendFile(response, url, type) {
  const content = await readFile(url).catch(() => undefined)
  if (content === undefined) return answer(response, 404, 'There is no such file.')
  response.writeHead(200, { 'content-type': `${type}; charset=utf-8` }).end(content)
}

function answer(response, status, detail, headers = {}) {
  const problem = { type: 'about:blank', title: detail, status, detail }
  response
    .writeHead(status, { ...headers, 'content-type': 'application/problem+json' })
    .end(JSON.stringify(problem))
}
