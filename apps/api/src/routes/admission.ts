import type { FastifyReply, FastifyRequest } from 'fastify'
import { checkContentEncoding } from '../intake/content-encoding.ts'
import { rejectBody } from '../intake/read-body.ts'
import { Problem } from '../problems.ts'
import type { Allowance } from '../rate-limits/allowance.ts'
import type { IntakeDependencies } from './intake-dependencies.ts'

/**
 * Everything that can reject a request before its body is read.
 *
 * @param authorization the Authorization header, or what stands for it in the protocol of the request
 */
export async function admit(
  request: FastifyRequest,
  reply: FastifyReply,
  { authenticator, rateLimits, overload, bodies, traces }: IntakeDependencies,
  authorization: string | undefined,
): Promise<void> {
  const { headers } = request
  request.project = await authenticator.authenticate(authorization, request, (project) => {
    request.allowance = rateLimits.of(project)
    if (request.allowance !== null) showLimits(request.allowance, reply)
  })
  if (traces !== undefined) request.span = traces.start(request)
  request.allowance?.rejectEarly(headers)
  overload.check()
  checkContentEncoding(headers['content-encoding'])
  checkCharset(request)
  if (headers.expect === undefined) return
  // Last: the client need not send a body that is rejected.
  const problem = rejectBody(request, bodies)
  if (problem !== undefined) throw problem
  reply.raw.writeContinue()
}

/** Sets the rate limit headers for every answer. */
function showLimits(allowance: Allowance, reply: FastifyReply): void {
  void reply.header('ratelimit-policy', allowance.policy).header('ratelimit', allowance.state)
}

/** @throws Problem `unsupported_media_type` */
function checkCharset({ headers }: FastifyRequest): void {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(headers['content-type'] ?? '')?.[1]
  if (charset === undefined || /^utf-?8$/i.test(charset)) return
  throw new Problem('unsupported_media_type', 'JSON is UTF-8; omit the charset.')
}
