import { Authenticator } from '@sluice/access'
import { authenticatorOptions, FakeRegistry } from '@sluice/access/testing'
import { type ClickHouseClient, LogReader, type ReadLimits } from '@sluice/clickhouse'
import { Metrics } from '@sluice/ops'
import { type Scope, Sessions } from '@sluice/projects'
import { createLogger, processClock } from '@sluice/runtime'
import type { FastifyInstance } from 'fastify'
import { randomUUID, randomUUIDv7 } from 'node:crypto'
import { connect } from 'node:net'
import { afterAll, expect, onTestFinished } from 'vitest'
import { connectAgain, openTestDatabase } from '../../../../packages/clickhouse/test/test-database.ts'
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

const TIME_MAX_MS = 20_000

interface TestQueryOptions extends Partial<Pick<OperatorDependencies, 'pipeline' | 'retries'>> {
  readonly registry?: FakeRegistry
  readonly limits?: Partial<ReadLimits>
  readonly explorer?: ExplorerFiles
  readonly slots?: QuerySlots
}

/** The query API with a real ClickHouse. */
export class TestQuery {
  readonly registry: FakeRegistry
  readonly redis = new FakeRedis()
  readonly sessions: Sessions
  readonly app: FastifyInstance
  readonly slots: QuerySlots
  readonly metrics = new Metrics({ app: 'query', version: '0' })
  readonly tails: Tails
  /** How many queries of each project the reader got. */
  queries = 0
  completeMs: number | null = null
  completeUntil: () => Promise<number | null> = async () => this.completeMs
  url = ''

  constructor(
    clickhouse: Pick<ClickHouseClient, 'query'>,
    {
      registry = new FakeRegistry(),
      limits,
      explorer = new Map(),
      slots = new QuerySlots(16, 16),
      pipeline = { read: notKnown },
      retries = { ask: notKnown, read: notKnown },
    }: TestQueryOptions = {},
  ) {
    this.registry = registry
    this.slots = slots
    const logger = createLogger('test', 'silent')
    const query: ClickHouseClient['query'] = (parameters) => {
      this.queries += 1
      return clickhouse.query(parameters)
    }
    const reader = new LogReader(
      { query },
      { timeMs: TIME_MAX_MS, rowsMax: 0, bytesMax: 0, memoryBytesMax: 1e9, ...limits },
    )
    const completePoint = { until: () => this.completeUntil() }
    this.tails = new Tails({ reader, completePoint, logger })
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
      timeMaxMs: TIME_MAX_MS,
      explorer,
      wallMs: Date.now,
      clock: processClock,
      logger,
      readiness: () => ({ ready: true, reasons: [] }),
      trustedProxies: false,
    })
  }

  /** @returns a new project, and a key with which it can be read */
  addProject(scopes: readonly Scope[] = ['read']) {
    const { id: projectId } = this.registry.addProject({ id: `p-${randomUUID().slice(0, 8)}` })
    return { projectId, ...this.registry.addKey({ projectId, scopes }) }
  }

  async listen(port = 0): Promise<void> {
    this.url = await this.app.listen({ port, host: '127.0.0.1' })
  }

  /** A client that sends a path as it is, and reads nothing until it is told to. It goes at the end of the test. */
  ask(path: string, key = '') {
    const { hostname, port } = new URL(this.url)
    const socket = connect(Number(port), hostname).setEncoding('utf8').pause()
    // The server may reset it.
    socket.on('error', () => undefined)
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`)
    onTestFinished(() => void socket.destroy())
    const client = {
      text: '',
      read: () => void socket.on('data', (text: string) => (client.text += text)).resume(),
      leave: () => void socket.destroy(),
    }
    return client
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
    await this.app.close()
  }
}

/**
 * A database with Sluice's tables for the tests of a file, and query APIs that read it. All of it is closed at the end.
 */
export async function useQueryTests() {
  const clickhouse = await openTestDatabase()
  const readers = await connectAgain(clickhouse, { connectionsMax: 16 })
  afterAll(async () => {
    await readers.close()
    await clickhouse.close()
  })
  return {
    clickhouse,
    readers,
    store: (rows: readonly RowFields[]) => store(clickhouse, rows),
    /** @param atEnd closes it at the end of the test, or with `afterAll` of the file */
    open: async (
      {
        client = readers,
        port,
        ...options
      }: TestQueryOptions & { client?: Pick<ClickHouseClient, 'query'>; port?: number } = {},
      atEnd: (close: () => Promise<void>) => void = onTestFinished,
    ): Promise<TestQuery> => {
      const api = new TestQuery(client, options)
      await api.listen(port)
      atEnd(() => api.close())
      return api
    },
  }
}

/** The status and the code of a response that must be a problem document. */
export async function problemOf(response: Response): Promise<string> {
  expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/)
  const body = (await response.json()) as { status: number; code: string; requestId: string }
  expect(body).toMatchObject({ status: response.status, requestId: response.headers.get('x-request-id') })
  return `${body.status} ${body.code}`
}

/** What a browser sends with a request of another site. */
export const foreignHeaders: Record<string, string>[] = [
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
]

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
