import type { Readiness } from '@sluice/runtime'
import type { FastifyInstance } from 'fastify'

/** `/livez`: the process answers. `/readyz`: it can take entries. Neither asks anybody else. */
export function healthRoutes(app: FastifyInstance, readiness: () => Readiness): void {
  app.get('/livez', () => ({ status: 'ok' }))
  app.get('/readyz', (_request, reply) => {
    const { ready, reasons } = readiness()
    return ready ? { status: 'ok' } : reply.code(503).send({ status: 'unavailable', reasons })
  })
}
