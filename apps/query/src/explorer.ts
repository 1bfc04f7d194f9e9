import type { FastifyInstance, FastifyReply } from 'fastify'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { gzipSync } from 'node:zlib'

interface File {
  readonly type: string
  readonly bytes: Buffer
  readonly gzipped: Buffer | undefined
}

/** The explorer's files by their paths. They are in memory: no path of a request is one of the file system. */
export type ExplorerFiles = ReadonlyMap<string, File>

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
}
const compressed = /^(text|image\/svg|application\/(json|manifest))/

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
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
  return new Map(
    paths.map((path) => {
      const bytes = readFileSync(path)
      const type = types[extname(path)] ?? 'application/octet-stream'
      const gzipped = compressed.test(type) ? gzipSync(bytes) : undefined
      return [`/${relative(folder, path).split(sep).join('/')}`, { type, bytes, gzipped }]
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
    void reply.headers({ 'cache-control': caching, 'content-security-policy': CONTENT_SECURITY_POLICY })
    return sendFile(reply, file, /\bgzip\b/.test(String(request.headers['accept-encoding'])))
  })
}

function sendFile(reply: FastifyReply, { type, bytes, gzipped }: File, acceptsGzip: boolean): FastifyReply {
  void reply.type(type)
  if (gzipped === undefined) return reply.send(bytes)
  void reply.header('vary', 'accept-encoding')
  return acceptsGzip ? reply.header('content-encoding', 'gzip').send(gzipped) : reply.send(bytes)
}
