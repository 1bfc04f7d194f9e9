import type { FastifyInstance, FastifyReply } from 'fastify'
import {
  loadAsset,
  referenceAssets,
  referencePage,
  referencePagePolicy,
  referenceScript,
} from '../openapi/reference-page.ts'
import { Turns } from '../turns.ts'

/** The page's files change only with a release, so browsers fetch them once a day. */
const ASSET_AGE_MAX_SECONDS = 86_400

/** A client accepts gzip if it lists it, and not with the weight 0. */
const ACCEPTS_GZIP = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i

/** `/openapi.json` describes requests and answers for programs. It needs no key. */
export function documentRoute(app: FastifyInstance): void {
  // Loaded and built at the first request, because it would slow down the start of the process.
  const document = once(async () => {
    const { buildDocument } = await import('../openapi/document.ts')
    return JSON.stringify(buildDocument())
  })
  app.get('/openapi.json', async (_request, reply) =>
    withSecurityHeaders(reply)
      .type('application/json')
      .send(await document()),
  )
}

/** `/docs` shows the document to humans. It needs no key. */
export function referenceRoutes(app: FastifyInstance): void {
  app.get('/docs', (_request, reply) => {
    void withSecurityHeaders(reply)
      .header('content-security-policy', referencePagePolicy)
      .type('text/html; charset=utf-8')
      .send(referencePage)
  })
  app.get('/docs/start.js', (_request, reply) => {
    void asset(reply, 'text/javascript; charset=utf-8').send(referenceScript)
  })
  // The operating system copies 1.4 MB of an answer at once. Hundreds of answers in one turn of the event loop would take a second.
  const turns = Turns.unshared()
  for (const [name, type] of Object.entries(referenceAssets)) {
    // Two files of 2 MB, and 0.5 MB compressed. Answers share these bytes, so an answer that is not read costs little memory.
    const load = once(() => loadAsset(name as keyof typeof referenceAssets))
    app.get(`/docs/${name}`, async ({ headers }, reply) => {
      const { content, gzipped } = await load()
      await turns.next()
      void asset(reply, type).header('vary', 'accept-encoding')
      if (!ACCEPTS_GZIP.test(headers['accept-encoding'] ?? '')) return reply.send(content)
      return reply.header('content-encoding', 'gzip').send(gzipped)
    })
  }
}

/** Runs `load` at the first call. Later calls share its result, unless it failed. */
function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }
}

function asset(reply: FastifyReply, type: string): FastifyReply {
  return withSecurityHeaders(reply)
    .header('cache-control', `public, max-age=${ASSET_AGE_MAX_SECONDS}`)
    .type(type)
}

/** Browsers must not guess another media type, and must not send the page's address to other sites. */
function withSecurityHeaders(reply: FastifyReply): FastifyReply {
  return reply.header('x-content-type-options', 'nosniff').header('referrer-policy', 'no-referrer')
}
