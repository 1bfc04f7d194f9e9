import type { FastifyInstance, FastifyReply } from 'fastify'
import { createReadStream } from 'node:fs'
import {
  assetPath,
  referenceAssets,
  referencePage,
  referencePagePolicy,
  referenceScript,
} from '../openapi/reference-page.ts'

/** The page's files change with a release alone: a browser asks for them once a day. */
const ASSET_AGE_MAX_SECONDS = 86_400

/** `/openapi.json`: what the API takes and answers. `/docs`: the same to read. Neither needs a key. */
export function referenceRoutes(app: FastifyInstance): void {
  let document: Promise<string> | undefined
  app.get('/openapi.json', async (_request, reply) => {
    // Loaded and built when somebody asks for it, and once: it is no business of a process that starts.
    document ??= import('../openapi/document.ts').then(({ buildDocument }) => JSON.stringify(buildDocument()))
    return hardened(reply)
      .type('application/json')
      .send(await document)
  })
  app.get('/docs', (_request, reply) => {
    void hardened(reply)
      .header('content-security-policy', referencePagePolicy)
      .type('text/html; charset=utf-8')
      .send(referencePage)
  })
  app.get('/docs/start.js', (_request, reply) => {
    void asset(reply, 'text/javascript; charset=utf-8').send(referenceScript)
  })
  for (const [name, type] of Object.entries(referenceAssets)) {
    app.get(`/docs/${name}`, (_request, reply) => {
      // Read from disk for each who asks: 2 MB are not worth keeping for a page that is rarely opened.
      void asset(reply, type).send(createReadStream(assetPath(name as keyof typeof referenceAssets)))
    })
  }
}

function asset(reply: FastifyReply, type: string): FastifyReply {
  return hardened(reply).header('cache-control', `public, max-age=${ASSET_AGE_MAX_SECONDS}`).type(type)
}

/** What is sent is what it says it is, and no page is told where the reader came from. */
function hardened(reply: FastifyReply): FastifyReply {
  return reply.header('x-content-type-options', 'nosniff').header('referrer-policy', 'no-referrer')
}
