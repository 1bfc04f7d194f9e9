import type { LogReader, ReadOptions } from '@sluice/clickhouse'
import { ReadLimitError } from '@sluice/clickhouse'
import type { Project } from '@sluice/projects'
import { matcher, toSql } from '@sluice/query-language'
import type { MonotonicClock } from '@sluice/runtime'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Readable } from 'node:stream'
import type { ReadAccess } from './access.ts'
import { estimateRows, fields, histogram, values } from './aggregates.ts'
import { cursorOf, type Listing, parseCursor } from './cursor.ts'
import { csvHead, entryCsv, entryJson, type EntryRow } from './entries.ts'
import { fieldSql } from './fields.ts'
import { type Page, readPage } from './log-search.ts'
import {
  type OperationName,
  operations,
  type ParametersOf,
  type ParsedQuery,
  readParameters,
} from './parameters.ts'
import { Problem } from './problems.ts'
import type { QueryMetrics } from './query-metrics.ts'
import type { QuerySlots } from './query-slots.ts'
import type { Selection } from './selection.ts'
import { openStream } from './tail/event-stream.ts'
import { endOf, parsePosition } from './tail/position.ts'
import { type Tails, tailsLimits } from './tail/tails.ts'
import { Viewer } from './tail/viewer.ts'
import { isoMs, type Moment, microsOf, resolve, timesAllowed } from './times.ts'
import { type CompletePoint, findEntry, waitUntilVisible } from './visibility.ts'

export interface QueryDependencies {
  readonly access: ReadAccess
  readonly reader: LogReader
  readonly completePoint: CompletePoint
  readonly slots: QuerySlots
  readonly tails: Tails
  readonly metrics: Pick<QueryMetrics, 'observe'>
  /** `QUERY_TIME_MAX_MS`. */
  readonly timeMaxMs: number
  /** The clock by which entries are received. */
  readonly wallMs: () => number
  readonly clock: MonotonicClock
}

export const routeLimits = {
  /** Entries of each query of an export. A client that reads slowly holds no query open. */
  exportPageRows: 2_000,
  /** An export whose client reads nothing for this long ends. */
  exportStalledMs: 60_000,
  /** How long the problem of an expensive query may take to say what it would read. */
  estimateMs: 1_000,
} as const

/** The client has closed its connection. Nobody gets an answer. */
export class ClientGoneError extends Error {
  override name = 'ClientGoneError'
}

/** Low-cardinality columns: a histogram counts all of their values. */
const smallFields: ReadonlySet<string> = new Set(['level', 'environment', 'source'])
const LEVEL = { ...fieldSql('level'), name: 'level' }

/** A request for one operation. */
interface Asked<Name extends OperationName> extends ReadOptions {
  readonly project: Project
  readonly parameters: ParametersOf<Name>
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

interface CommonParameters {
  readonly query: ParsedQuery
  readonly from: Moment
  readonly until: Moment
  readonly after: string | undefined
}

/** What an answer is about, and how much of it is final. */
interface Prepared {
  readonly selection: Selection
  readonly completeMs: number | null
  /** Later than the receipt of everything that the answer must have. */
  readonly nowMs: number
}

export function queryRoutes(app: FastifyInstance, dependencies: QueryDependencies): void {
  const { access, reader, completePoint, slots, tails, metrics, timeMaxMs, wallMs, clock } = dependencies

  const completeUntil = (): Promise<number | null> => completePoint.until().catch(() => null)

  async function prepare(
    { query, from, until, after }: CommonParameters,
    { id: projectId }: Project,
    options: ReadOptions,
  ): Promise<Prepared> {
    const receivedMs =
      after === undefined
        ? 0
        : await waitUntilVisible(reader, completePoint, clock, { projectId, id: after }, options)
    const completeMs = await completeUntil()
    const nowMs = Math.max(wallMs(), receivedMs + 1, (completeMs ?? 0) + 1)
    const range = { fromUs: resolve(from, nowMs), untilUs: resolve(until, nowMs) }
    if (range.fromUs >= range.untilUs) {
      const errors = [{ parameter: 'from', message: 'must be before until' }]
      throw new Problem('invalid_parameter', 'from must be before until.', { errors })
    }
    return { selection: { projectId, condition: toSql(query.query), range }, completeMs, nowMs }
  }

  function search(
    selection: Omit<Selection, 'range'>,
    listing: Listing,
    limit: number,
    signal: AbortSignal,
  ): Promise<Page> {
    return readPage(selection, listing, limit, {
      reader,
      signal,
      timeMs: timeMaxMs,
      monotonicMs: () => clock.nowMs(),
    })
  }

  /** The problem of a query that is too expensive, with what it would read. */
  async function tooExpensive(error: ReadLimitError, selection: Selection): Promise<Problem> {
    const options = {
      signal: AbortSignal.timeout(routeLimits.estimateMs),
      limits: { timeMs: routeLimits.estimateMs, rowsMax: 0, bytesMax: 0 },
    }
    const rows = await estimateRows(reader, selection, options).catch(() => undefined)
    const size = rows === undefined ? 'too much' : `about ${rows.toLocaleString('en-US')} entries`
    return new Problem(
      'query_too_expensive',
      `The query would read ${size}, and exceeds its limit of ${error.limit}. ` +
        'Narrow the time range, or search for a field with a value instead of a text.',
    )
  }

  async function orTooExpensive<T>(selection: Selection, answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      throw error instanceof ReadLimitError ? await tooExpensive(error, selection) : error
    }
  }

  /** Adds the route of an operation that takes a slot until it has answered, and ends when its client goes. */
  function add<Name extends OperationName>(
    name: Name,
    handle: (asked: Asked<Name>) => Promise<FastifyReply>,
    slotOf = (project: Project): (() => void) => slots.take(project.id),
  ): void {
    app.get(`/v1/query/${name}`, async (request, reply) => {
      const startedMs = clock.nowMs()
      const project = await access.projectOf(request)
      const given = request.query as Readonly<Record<string, unknown>>
      const parameters = readParameters(operations[name].parameters, given) as ParametersOf<Name>
      const release = slotOf(project)
      const gone = new AbortController()
      reply.raw.once('close', () => {
        release()
        gone.abort(new ClientGoneError('the client has closed its connection'))
      })
      const { signal } = gone
      try {
        return await handle({ project, parameters, request, reply, signal })
      } finally {
        metrics.observe((clock.nowMs() - startedMs) / 1_000, name)
      }
    })
  }

  const sendJson = (reply: FastifyReply, completeMs: number | null, answer: object): FastifyReply =>
    reply.send({ ...answer, complete_until: isoOf(completeMs) })

  add('logs', async ({ project, parameters, reply, signal }) => {
    const { query, cursor, order, limit } = parameters
    const given = cursor === undefined ? undefined : parseCursor(cursor, query.text)
    if (cursor !== undefined && given === undefined) {
      const errors = [{ parameter: 'cursor', message: 'is not one of this query' }]
      throw new Problem('invalid_parameter', 'cursor is not one of this query.', { errors })
    }
    const { selection, completeMs, nowMs } = await prepare(parameters, project, { signal })
    const listing = given ?? { ...selection.range, order, receivedUntilMs: nowMs }
    const page = await orTooExpensive(
      { ...selection, range: listing },
      search(selection, listing, limit, signal),
    )
    const next = page.rest === undefined ? null : cursorOf(page.rest, query.text)
    const limited = page.limitedBy === undefined ? '' : `,"limited_by":"${page.limitedBy}"`
    return reply
      .type('application/json')
      .send(
        `{"entries":${entriesJson(page.rows)},"next":${JSON.stringify(next)},"complete_until":${JSON.stringify(isoOf(completeMs))}${limited}}`,
      )
  })

  add('histogram', async ({ project, parameters, reply, signal }) => {
    const { by = LEVEL, buckets } = parameters
    const { selection, completeMs } = await prepare(parameters, project, { signal })
    const of = {
      by: { sql: "''", parameters: {}, ...by },
      isSmall: smallFields.has(by.name),
      bucketsMax: buckets,
    }
    const answer = histogram(reader, selection, of, { signal })
    return sendJson(reply, completeMs, await orTooExpensive(selection, answer))
  })

  add('fields', async ({ project, parameters, reply, signal }) => {
    const { selection, completeMs } = await prepare(parameters, project, { signal })
    return sendJson(reply, completeMs, await orTooExpensive(selection, fields(reader, selection, { signal })))
  })

  add('values', async ({ project, parameters, reply, signal }) => {
    const { field, limit } = parameters
    const { selection, completeMs } = await prepare(parameters, project, { signal })
    const answer = values(reader, selection, field, limit, { signal })
    return sendJson(reply, completeMs, await orTooExpensive(selection, answer))
  })

  add('context', async ({ project: { id: projectId }, parameters, reply, signal }) => {
    const { id, query, before, after_count: afterCount, same } = parameters
    const completeMs = await completeUntil()
    const entry = await findEntry(reader, projectId, id, { signal })
    if (entry === undefined) throw new Problem('entry_not_found')
    const receivedUntilMs = Math.max(wallMs(), Date.parse(entry.received_at))
    const last = { timestampUs: microsOf(entry.timestamp), id }
    const own = toSql(query.query)
    const condition =
      same === undefined
        ? own
        : {
            sql: `(${own.sql}) AND service = {sameService:String}`,
            parameters: { ...own.parameters, sameService: entry.service },
          }
    const around = async (order: 'asc' | 'desc', limit: number): Promise<Page> => {
      const listing = { ...timesAllowed, order, receivedUntilMs, last }
      if (limit === 0) return { rows: [], rest: undefined, limitedBy: undefined }
      const selection = { projectId, condition }
      return orTooExpensive({ ...selection, range: timesAllowed }, search(selection, listing, limit, signal))
    }
    const older = await around('desc', before)
    const newer = await around('asc', afterCount)
    const limitedBy = older.limitedBy ?? newer.limitedBy
    const limited = limitedBy === undefined ? '' : `,"limited_by":"${limitedBy}"`
    return reply
      .type('application/json')
      .send(
        `{"before":${entriesJson(older.rows.toReversed())},"entry":${entryJson(entry)},"after":${entriesJson(newer.rows)},"complete_until":${JSON.stringify(isoOf(completeMs))}${limited}}`,
      )
  })

  add('export', async ({ project, parameters, request, reply, signal }) => {
    const { format } = parameters
    const { selection, completeMs, nowMs } = await prepare(parameters, project, { signal })
    const lineOf = format === 'csv' ? entryCsv : (row: EntryRow): string => `${entryJson(row)}\n`
    async function* lines(): AsyncGenerator<string> {
      if (format === 'csv') yield csvHead
      let listing: Listing | undefined = { ...selection.range, order: 'asc', receivedUntilMs: nowMs }
      while (listing !== undefined) {
        const page: Page = await search(selection, listing, routeLimits.exportPageRows, signal)
        if (page.rows.length > 0) yield page.rows.map(lineOf).join('')
        listing = page.rest
        // An export may outlive the validity of its key.
        if (listing !== undefined) await access.projectOf(request)
      }
    }
    request.socket.setTimeout(routeLimits.exportStalledMs, () => request.socket.destroy())
    reply.raw.once('close', () => request.socket.setTimeout(0))
    return reply
      .type(format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson')
      .header('sluice-complete-until', isoOf(completeMs) ?? 'unknown')
      .header('content-disposition', `attachment; filename="logs.${format}"`)
      .send(Readable.from(lines(), { objectMode: false }))
  })

  add(
    'tail',
    async ({ project: { id: projectId }, parameters, request, reply }) => {
      const { query, from } = parameters
      const given = request.headers['last-event-id']
      const resumed = given === undefined || given === '' ? undefined : parsePosition(String(given))
      if (given !== undefined && given !== '' && resumed === undefined)
        throw new Problem('invalid_parameter', 'Last-Event-ID is not the id of an event.')
      const nowMs = wallMs()
      const position =
        resumed ??
        endOf(from === undefined ? ((await completeUntil()) ?? nowMs) : Number(resolve(from, nowMs) / 1_000n))
      if (nowMs - position.receivedMs > tailsLimits.resumeMs)
        throw new Problem(
          'invalid_parameter',
          'A tail may begin at most a day ago. Read older entries with /v1/query/logs.',
        )
      const matches = matcher(query.query)
      const viewer = new Viewer({
        sink: openStream(reply),
        text: query.text,
        condition: toSql(query.query),
        matches: (row) => matches({ ...row, metadata: row.metadata_text }),
        position,
        check: () => access.projectOf(request),
        monotonicMs: () => clock.nowMs(),
      })
      reply.raw.once('close', () => tails.remove(projectId, viewer))
      tails.add(projectId, viewer)
      return reply
    },
    (project) => {
      tails.requireRoom(project.id)
      return () => undefined
    },
  )
}

const entriesJson = (rows: readonly EntryRow[]): string => `[${rows.map(entryJson).join(',')}]`

const isoOf = (epochMs: number | null): string | null => (epochMs === null ? null : isoMs(epochMs))
