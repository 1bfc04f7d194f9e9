import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import { METHODS } from 'node:http'
import { Problem, problems } from '../problems.ts'

/**
 * Answers all other methods of a path with 405. Fastify would answer with 404, and knows only some of the methods.
 *
 * @param allowed the methods that the path has
 */
export function rejectOtherMethods(
  app: FastifyInstance,
  url: string,
  allowed: readonly string[],
  config: FastifyContextConfig = {},
): void {
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  const { method_not_allowed: standard } = problems
  const detail = allowed.includes('POST') ? standard.detail : `Use ${allowed.join(' or ')}.`
  const methodNotAllowed = (): Problem =>
    new Problem('method_not_allowed', detail, {
      headers: { allow: allowed.join(', ') },
    })
  app.route({
    method: METHODS.filter((method) => !allowed.includes(method)),
    url,
    exposeHeadRoute: false,
    config,
    onRequest: (_request, _reply, done) => done(methodNotAllowed()),
    handler: () => {
      throw methodNotAllowed()
    },
  })
}
