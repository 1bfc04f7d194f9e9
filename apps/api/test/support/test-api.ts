import { Authenticator } from '@sluice/access'
import { authenticatorOptions, FakeRegistry } from '@sluice/access/testing'
import { HttpConnection } from '@sluice/harness'
import { shardNames } from '@sluice/queue'
import { createLogger, type Readiness } from '@sluice/runtime'
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import { randomUUIDv7 } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { buildApp, type AppDependencies } from '../../src/app.ts'
import { ChunkWriter, type ChunkWriterOptions } from '../../src/chunks/chunk-writer.ts'
import { connectionLimits } from '../../src/connections/connection-limits.ts'
import { idempotentWriter } from '../../src/idempotency/idempotency.ts'
import { Intake } from '../../src/intake/intake.ts'
import { RequestCounts } from '../../src/metrics/api-metrics.ts'
import { BodyBudget, type BodyLimits } from '../../src/overload/body-budget.ts'
import { projectRateLimits } from '../../src/rate-limits/allowance.ts'
import { FakeBuckets } from './fake-buckets.ts'
import { FakeQueue } from './fake-queue.ts'
import { FakeSignals } from './fake-signals.ts'

/** The time of receipt of every request. */
export const RECEIVED_AT_MS = Date.UTC(2026, 10, 20, 12, 0, 0, 5)

const WINDOW_MS = 3_600_000

/** The API with real components except Redis. */
export interface TestApi {
  readonly app: FastifyInstance
  readonly registry: FakeRegistry
  readonly queue: FakeQueue
  readonly buckets: FakeBuckets
  readonly authenticator: Authenticator
  /** The signals of the overload monitor. A test triggers the reads. */
  readonly signals: FakeSignals
  readonly bodies: BodyBudget
  readonly counts: RequestCounts
  /** A valid key of the project `demo`. */
  readonly key: string
  readiness: Readiness
  /** Sends a POST request, by default with the valid key and as application/json. */
  post(body: Body, options?: Omit<InjectOptions, 'payload'>): Promise<LightMyRequestResponse>
  /** Listens, unless it does already. @returns the port */
  listen(): Promise<number>
  /** Opens a connection, which `close` destroys. */
  connect(): Promise<HttpConnection>
  /** Acknowledges the adds that wait, and closes all connections. */
  close(): Promise<void>
}

type InjectHeaders = NonNullable<InjectOptions['headers']>
export type Body = string | Buffer | object | undefined

export type TestApiOptions = {
  readonly bodyLimits?: BodyLimits
  readonly chunkTraces?: ChunkWriterOptions['traces']
} & Partial<
  Pick<
    AppDependencies,
    'connectionLimits' | 'docsEnabled' | 'logger' | 'traces' | 'trustedProxies' | 'wallMs'
  >
>

/** @param api the object that becomes the API, instead of a closed one */
export function buildTestApi(
  {
    bodyLimits = { bytesMax: 100_000_000, projectBytesMax: 100_000_000 },
    chunkTraces,
    ...dependencies
  }: TestApiOptions = {},
  api = {} as TestApi,
): TestApi {
  const registry = new FakeRegistry()
  registry.addProject()
  const { key } = registry.addKey()
  const queue = new FakeQueue({ holding: false })
  const buckets = new FakeBuckets()
  const authenticator = new Authenticator(registry, authenticatorOptions)
  const signals = new FakeSignals()
  const logger = createLogger('test', 'silent')
  const bodies = new BodyBudget({ limits: bodyLimits, logger, random: () => 0 })
  const counts = new RequestCounts()
  const writer = new ChunkWriter({
    queues: [queue],
    makeId: randomUUIDv7,
    monotonicMs: () => performance.now(),
    records: { windowMs: WINDOW_MS, perProjectMax: 1_000_000 },
    traces: chunkTraces,
  })
  const connections: HttpConnection[] = []
  let listening: Promise<unknown> | undefined
  return Object.assign<TestApi, TestApi>(api, {
    registry,
    queue,
    signals,
    buckets,
    authenticator,
    bodies,
    counts,
    key,
    readiness: { ready: true, reasons: [] },
    app: buildApp({
      authenticator,
      // Projects have limits only if a test sets them, and the clock of the limits is constant.
      rateLimits: projectRateLimits(
        buckets.lease,
        { RATE_LIMIT_ENTRIES_PER_SECOND: 0, RATE_LIMIT_BYTES_PER_SECOND: 0 },
        logger,
        () => 0,
      ),
      intake: new Intake(Date.now),
      writer,
      writeOnce: idempotentWriter(writer, shardNames('test', 1), randomUUIDv7),
      overload: signals.monitor,
      bodies,
      counts,
      wallMs: () => RECEIVED_AT_MS,
      logger,
      readiness: () => api.readiness,
      connectionLimits,
      trustedProxies: false,
      docsEnabled: true,
      ...dependencies,
    }),
    post: (body, { headers, ...options } = {}) =>
      api.app.inject({
        method: 'POST',
        url: '/v1/logs',
        ...options,
        headers: withoutUndefined({
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...headers,
        }),
        ...(body === undefined ? {} : { payload: body }),
      }),
    listen: async () => {
      await (listening ??= api.app.listen({ host: '127.0.0.1', port: 0 }))
      return (api.app.server.address() as AddressInfo).port
    },
    connect: async () => {
      const connection = await HttpConnection.open(await api.listen())
      connections.push(connection)
      return connection
    },
    close: async () => {
      queue.holding = false
      for (const { confirm } of queue.adds) confirm()
      for (const connection of connections) connection.destroy()
      await api.app.close()
    },
  })
}

/** A header with the value undefined is not sent. */
function withoutUndefined(headers: InjectHeaders): InjectHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))
}
