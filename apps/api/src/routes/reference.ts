import type { FastifyInstance, FastifyReply } from 'fastify'
import { createReadStream } from 'node:fs'
import {
  assetPath,
  referenceAssets,
  referencePage,
  referencePagePolicy,
  referenceScript,
} from '../openapi/reference-page.ts'

/** The page's files change only with a release, so browsers fetch them once a day. */
const ASSET_AGE_MAX_SECONDS = 86_400

/** `/openapi.json` describes requests and answers for programs, `/docs` shows the same to humans. Neither needs a key. */
export function referenceRoutes(app: FastifyInstance): void {
  let document: Promise<string> | undefined
  app.get('/openapi.json', async (_request, reply) => {
    // Loaded and built at the first request, and only once, because it would slow down the start of the process.
    document ??= import('../openapi/document.ts').then(({ buildDocument }) => JSON.stringify(buildDocument()))
    return withSecurityHeaders(reply)
      .type('application/json')
      .send(await document)
  })
  app.get('/docs', (_request, reply) => {
    void withSecurityHeaders(reply)
      .header('content-security-policy', referencePagePolicy)
      .type('text/html; charset=utf-8')
      .send(referencePage)
  })
  app.get('/docs/start.js', (_request, reply) => {
    void asset(reply, 'text/javascript; charset=utf-8').send(referenceScript)
  })
  for (const [name, type] of Object.entries(referenceAssets)) {
    app.get(`/docs/${name}`, (_request, reply) => {
      // Read from disk each time: the page is opened too rarely to keep 2 MB in memory for it.
      void asset(reply, type).send(createReadStream(assetPath(name as keyof typeof referenceAssets)))
    })
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
