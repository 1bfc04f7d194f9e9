import type { FastifyInstance } from 'fastify'
import { METHODS } from 'node:http'
import { Problem, problems } from '../problems.ts'

/** Answers every method but POST with 405. Fastify would answer with 404, and knows only some of the methods. */
export function onlyPost(app: FastifyInstance, url: string): void {
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  app.route({
    method: METHODS.filter((method) => method !== 'POST'),
    url,
    exposeHeadRoute: false,
    onRequest: (_request, _reply, done) => done(methodNotAllowed()),
    handler: () => {
      throw methodNotAllowed()
    },
  })
}

function methodNotAllowed(): Problem {
  return new Problem('method_not_allowed', problems.method_not_allowed.detail, { headers: { allow: 'POST' } })
}
