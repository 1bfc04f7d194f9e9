import { Authenticator } from '@sluice/access'
import { authenticatorOptions, FakeRegistry } from '@sluice/access/testing'
import { type ClickHouseClient, LogReader, type ReadLimits } from '@sluice/clickhouse'
import { Metrics } from '@sluice/ops'
import { type Project, type Scope, Sessions } from '@sluice/projects'
import { createLogger, processClock, Semaphore } from '@sluice/runtime'
import type { FastifyInstance } from 'fastify'
import { randomUUID, randomUUIDv7 } from 'node:crypto'
import { ReadAccess } from '../../src/access.ts'
import { buildApp } from '../../src/app.ts'
import type { ExplorerFiles } from '../../src/explorer.ts'
import type { OperatorDependencies } from '../../src/operator-routes.ts'
import { Problem } from '../../src/problems.ts'
import { exportQueries } from '../../src/query-metrics.ts'
import { QuerySlots } from '../../src/query-slots.ts'
import { Tails } from '../../src/tail/tails.ts'

/** An entry as a client of the query API sees it. Absent columns are left out. */
export interface Entry {
  readonly id: string
  readonly timestamp: string
  readonly received_at: string
  readonly level: string
  readonly message: string
  readonly service?: string
  readonly metadata?: unknown
}

/** The commands of Redis that sessions use, in memory. */
class FakeRedis {
  readonly values = new Map<string, string>()
  set = async (key: string, value: string): Promise<'OK'> => {
    this.values.set(key, value)
    return 'OK'
  }
  get = async (key: string): Promise<string | null> => this.values.get(key) ?? null
  getdel = async (key: string): Promise<string | null> => {
    const value = this.values.get(key) ?? null
    this.values.delete(key)
    return value
  }
  del = async (key: string): Promise<number> => Number(this.values.delete(key))
}

function notKnown(): never {
  throw new Problem('queue_unavailable')
}

/** The query API with a real ClickHouse. */
export class TestQuery {
  readonly registry = new FakeRegistry()
  readonly redis = new FakeRedis()
  readonly sessions: Sessions
  readonly app: FastifyInstance
  readonly metrics = new Metrics({ app: 'query', version: '0' })
  readonly tails: Tails
  /** How many queries of each project the reader got. */
  queries = 0
  completeMs: number | null = null
  completeUntil: () => Promise<number | null> = async () => this.completeMs
  url = ''
  readonly #stopping = new AbortController()

  constructor(
    clickhouse: Pick<ClickHouseClient, 'query'>,
    {
      limits,
      explorer = new Map(),
      slots = new QuerySlots(16, 16),
      timeMaxMs = 20_000,
      pipeline = { read: notKnown },
      retries = { ask: notKnown, read: notKnown },
    }: Partial<Pick<OperatorDependencies, 'pipeline' | 'retries'>> & {
      limits?: Partial<ReadLimits>
      explorer?: ExplorerFiles
      slots?: QuerySlots
      timeMaxMs?: number
    } = {},
  ) {
    const logger = createLogger('test', 'silent')
    const query: ClickHouseClient['query'] = (parameters) => {
      this.queries += 1
      return clickhouse.query(parameters)
    }
    const reader = new LogReader(
      { query },
      { timeMs: timeMaxMs, rowsMax: 0, bytesMax: 0, memoryBytesMax: 1e9, ...limits },
    )
    const completePoint = { until: () => this.completeUntil() }
    const permits = new Semaphore(4, this.#stopping.signal)
    this.tails = new Tails({ reader, completePoint, permits, logger })
    const authenticator = new Authenticator(this.registry, { ...authenticatorOptions, scope: 'read' })
    this.sessions = new Sessions(this.redis as unknown as ConstructorParameters<typeof Sessions>[0], 'test')
    this.app = buildApp({
      access: new ReadAccess(authenticator, this.sessions),
      reader,
      completePoint,
      slots,
      tails: this.tails,
      pipeline,
      retries,
      metrics: exportQueries(this.metrics, {
        slots,
        tails: this.tails,
        pipeline: { completeBehindS: undefined },
      }),
      timeMaxMs,
      explorer,
      wallMs: Date.now,
      clock: processClock,
      logger,
      readiness: () => ({ ready: true, reasons: [] }),
      trustedProxies: false,
    })
  }

  /** @returns a new project, and a key with which it can be read */
  addProject(scopes: readonly Scope[] = ['read']): { project: Project; key: string; keyHash: string } {
    const project = this.registry.addProject({ id: `p-${randomUUID().slice(0, 8)}` })
    return { project, ...this.registry.addKey({ projectId: project.id, scopes }) }
  }

  async listen(): Promise<void> {
    this.url = await this.app.listen({ port: 0, host: '127.0.0.1' })
  }

  /** A response to a path under `/v1/query/`. */
  get(
    key: string,
    path: string,
    parameters: Record<string, string> = {},
    init: { headers?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<Response> {
    const address = `${this.url}/v1/query/${path}?${new URLSearchParams(parameters).toString()}`
    return fetch(address, { ...init, headers: { authorization: `Bearer ${key}`, ...init.headers } })
  }

  async status(key: string, path: string, parameters: Record<string, string> = {}): Promise<number> {
    const response = await this.get(key, path, parameters)
    await response.text()
    return response.status
  }

  async json<T>(key: string, path: string, parameters: Record<string, string> = {}): Promise<T> {
    const response = await this.get(key, path, parameters)
    const text = await response.text()
    if (!response.ok) throw new Error(text)
    return JSON.parse(text) as T
  }

  async close(): Promise<void> {
    this.#stopping.abort()
    await this.app.close()
  }
}

export interface RowFields {
  readonly projectId: string
  readonly id?: string
  readonly timestamp?: string
  readonly receivedMs?: number
  readonly level?: string
  readonly message?: string
  readonly service?: string
  readonly metadata?: string
}

/** Stores entries in one insert. @returns them as the API answers them */
export async function store(clickhouse: ClickHouseClient, rows: readonly RowFields[]): Promise<Entry[]> {
  const entries = rows.map(({ receivedMs = Date.now(), ...row }) => {
    const received = new Date(receivedMs).toISOString()
    return {
      id: row.id ?? randomUUIDv7(),
      timestamp: row.timestamp ?? `${received.slice(0, -1)}000Z`,
      received_at: received,
      level: row.level ?? 'info',
      ...(row.service !== undefined && { service: row.service }),
      message: row.message ?? 'm',
      ...(row.metadata !== undefined && { metadata: JSON.parse(row.metadata) as unknown }),
    }
  })
  const expiresOn = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10)
  await clickhouse.insert({
    table: 'logs',
    format: 'JSONEachRow',
    clickhouse_settings: { date_time_input_format: 'best_effort' },
    values: entries.map(({ metadata: _parsed, ...entry }, index) => ({
      ...entry,
      project_id: rows[index]?.projectId,
      expires_on: expiresOn,
      metadata_text: rows[index]?.metadata ?? '{}',
    })),
  })
  return entries
}
