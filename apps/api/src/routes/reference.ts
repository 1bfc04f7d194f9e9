import type { FastifyInstance, FastifyReply } from 'fastify'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { openapiDocument } from '../openapi/document.ts'
import { Turns } from '../turns.ts'

/** The page at `/docs`. Its URLs are relative, so that a proxy can serve it under a path prefix. */
const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Sluice: API reference</title>
    <link rel="stylesheet" href="docs/swagger-ui.css">
  </head>
  <body>
    <div id="reference"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`

/** Shows the document only. There is no form for requests, because API keys must not be used in browsers. */
const startScript = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  supportedSubmitMethods: [],
  validatorUrl: null,
  plugins: [{ wrapComponents: { authorizeBtn: () => () => null, authorizeOperationBtn: () => () => null } }],
})
`

/** Forbids inline scripts and other servers. Swagger UI needs style attributes, but no inline style elements. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const JAVASCRIPT = 'text/javascript; charset=utf-8'

/** The files of the page that are part of Swagger UI, with their media types. */
const assets = { 'swagger-ui-bundle.js': JAVASCRIPT, 'swagger-ui.css': 'text/css; charset=utf-8' } as const

const document = JSON.stringify(openapiDocument)

/**
 * `/openapi.json` describes requests and responses for programs, and the page at `/docs` shows them to humans. They need no key. The files are
 * sent from memory: a plugin that opens a file for each request would hold a descriptor and a buffer for each connection that does not read.
 */
export function referenceRoutes(app: FastifyInstance, hasPage: boolean): void {
  app.get('/openapi.json', (_request, reply) => {
    void withSecurityHeaders(reply).type('application/json').send(document)
  })
  if (!hasPage) return
  app.get('/docs', (_request, reply) => {
    void withSecurityHeaders(reply)
      .header('content-security-policy', pagePolicy)
      .type('text/html; charset=utf-8')
      .send(page)
  })
  app.get('/docs/start.js', (_request, reply) => {
    void withSecurityHeaders(reply).header('cache-control', CACHE_CONTROL).type(JAVASCRIPT).send(startScript)
  })
  // The operating system copies a response at once. Hundreds of responses in one turn of the event loop would take long.
  const turns = Turns.unshared()
  for (const [name, type] of Object.entries(assets)) {
    let gzipped: Promise<Buffer> | undefined
    app.get(`/docs/${name}`, async (_request, reply) => {
      gzipped ??= readAsset(name)
      const body = await gzipped
      await turns.next()
      return withSecurityHeaders(reply)
        .headers({ 'cache-control': CACHE_CONTROL, 'content-encoding': 'gzip' })
        .type(type)
        .send(body)
    })
  }
}

/** The page's files change only with a release, so browsers fetch them once a day. */
const CACHE_CONTROL = 'public, max-age=86400'

/** Both files have 0.5 MB, compressed: every browser accepts gzip. All responses share these bytes. */
async function readAsset(name: string): Promise<Buffer> {
  return promisify(gzip)(await readFile(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`))))
}

/** Browsers must not guess another media type, and must not send the page's address to other sites. */
function withSecurityHeaders(reply: FastifyReply): FastifyReply {
  return reply.header('x-content-type-options', 'nosniff').header('referrer-policy', 'no-referrer')
}
