import type { FastifyInstance } from 'fastify'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { gzipSync } from 'node:zlib'

interface File {
  readonly type: string
  readonly bytes: Buffer
  readonly gzipped: Buffer
}

/** The explorer's files by their paths. They are in memory: no path of a request is one of the file system. */
export type ExplorerFiles = ReadonlyMap<string, File>

/** Of what the bundler writes. */
const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const PAGE = '/index.html'
/** Names with a hash of the content, as `app-1A2B3C4D.js`. */
const HASHED = /-[A-Za-z0-9_]{8,}\.\w+$/

/**
 * Scripts and styles only come from files of the explorer, so no text of an entry can become one, and nothing is loaded from, or sent to,
 * another site.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  ...['script', 'style', 'connect', 'font', 'manifest'].map((kind) => `${kind}-src 'self'`),
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Reads the files of a folder. A folder that is missing has none: the explorer is built at the installation. */
export function readExplorer(folder: string): ExplorerFiles {
  if (!existsSync(folder)) return new Map()
  return new Map(
    readdirSync(folder).map((name) => {
      const bytes = readFileSync(join(folder, name))
      const type = types[extname(name)] ?? 'application/octet-stream'
      return [`/${name}`, { type, bytes, gzipped: gzipSync(bytes) }]
    }),
  )
}

/** Serves the explorer. Its pages have paths of their own, so other paths without a dot are the page too. */
export function explorerRoutes(app: FastifyInstance, files: ExplorerFiles): void {
  app.get('/*', async (request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const isPage = !path.startsWith('/v1/') && !path.includes('.')
    const file = files.get(path) ?? (isPage ? files.get(PAGE) : undefined)
    if (file === undefined && path === '/' && files.size === 0)
      return reply.type('text/plain').send('The explorer is not built. The query API is under /v1/query.\n')
    if (file === undefined) return reply.callNotFound()
    const caching = HASHED.test(path) ? 'public, max-age=31536000, immutable' : 'no-store'
    void reply.type(file.type).headers({
      'cache-control': caching,
      'content-security-policy': CONTENT_SECURITY_POLICY,
      vary: 'accept-encoding',
    })
    if (!/\bgzip\b/.test(String(request.headers['accept-encoding']))) return reply.send(file.bytes)
    return reply.header('content-encoding', 'gzip').send(file.gzipped)
  })
}
