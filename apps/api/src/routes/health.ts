import type { Readiness } from '@sluice/runtime'
import type { FastifyInstance } from 'fastify'
import { livezOperation, readyzOperation } from '../openapi/operations.ts'
import { Problem } from '../problems.ts'

/** `/livez`: the process responds. `/readyz`: it can accept entries. Neither makes a remote call. */
export function healthRoutes(app: FastifyInstance, readiness: () => Readiness): void {
  app.get('/livez', { config: { operation: livezOperation } }, () => ({ status: 'ok' }))
  app.get('/readyz', { config: { operation: readyzOperation } }, () => {
    const { ready, reasons } = readiness()
    if (!ready) throw new Problem('not_ready', `${reasons.join('; ')}.`)
    return { status: 'ok' }
  })
}
