import { type LogReader, ReadLimitError, type ReadOptions } from '@sluice/clickhouse'
import type { Project } from '@sluice/projects'
import { matcher } from '@sluice/query-language'
import type { MonotonicClock } from '@sluice/runtime'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Readable } from 'node:stream'
import type { ReadAccess } from './access.ts'
import { estimateRows, fields, histogram, values } from './aggregates.ts'
import { cursorOf, type Listing, parseCursor } from './cursor.ts'
import { csvHead, entryCsv, entryJson, type EntryRow } from './entries.ts'
import { type Page, readPage } from './log-search.ts'
import { invalidParameter, type OperationName, type ParametersOf } from './parameters.ts'
import { Problem } from './problems.ts'
import type { Selection } from './selection.ts'
import { openStream } from './tail/event-stream.ts'
import { endOf, parsePosition, type Position } from './tail/position.ts'
import { type Tails, tailsLimits } from './tail/tails.ts'
import { isoMs, type Moment, microsOf, resolve, timesAllowed } from './times.ts'
import { type CompletePoint, findEntry, receivedLate, waitUntilVisible } from './visibility.ts'

export interface OperationDependencies {
  readonly access: ReadAccess
  readonly reader: LogReader
  readonly completePoint: CompletePoint
  readonly tails: Tails
  /** `QUERY_TIME_MAX_MS`. */
  readonly timeMaxMs: number
  /** The clock by which entries are received. */
  readonly wallMs: () => number
  readonly clock: MonotonicClock
}

const operationLimits = {
  /** Entries of each query of an export. A client that reads slowly holds no query open. */
  exportPageRows: 10_000,
  /** How long the problem of an expensive query may take to say what it would read. */
  estimateMs: 1_000,
} as const

/** A request for an operation. */
export interface Asked<Name extends OperationName = OperationName> extends ReadOptions {
  readonly project: Project
  readonly parameters: ParametersOf<Name>
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

/** One with the parameters that several operations have. */
type AskedEntries = Asked<'fields'>

/** The operations of the query API: each sends the answer to a request. */
export class Operations implements Record<OperationName, (asked: never) => Promise<FastifyReply>> {
  readonly #dependencies: OperationDependencies

  constructor(dependencies: OperationDependencies) {
    this.#dependencies = dependencies
  }

  async logs(asked: Asked<'logs'>): Promise<FastifyReply> {
    const { query, cursor, order, limit } = asked.parameters
    const given = cursor === undefined ? undefined : parseCursor(cursor, query.text)
    if (cursor !== undefined && given === undefined)
      throw invalidParameter('cursor', 'is not one of this query')
    const { selection, completeMs, nowMs } = await this.#prepare(asked)
    const listing = given ?? { ...selection.range, order, receivedUntilMs: nowMs }
    const { rows, rest, limitedBy } = await this.#search(selection, listing, limit, asked.signal)
    const next = rest === undefined ? null : cursorOf(rest, query.text)
    const entries = entriesJson(rows)
    return sendWithEntries(asked.reply, { entries }, completeMs, { next, limited_by: limitedBy })
  }

  histogram(asked: Asked<'histogram'>): Promise<FastifyReply> {
    const { by, buckets: bucketsMax } = asked.parameters
    return this.#count(asked, (...source) => histogram(...source, { by, bucketsMax }))
  }

  fields(asked: Asked<'fields'>): Promise<FastifyReply> {
    return this.#count(asked, fields)
  }

  values(asked: Asked<'values'>): Promise<FastifyReply> {
    const { field, limit } = asked.parameters
    return this.#count(asked, (...source) => values(...source, field, limit))
  }

  async context(asked: Asked<'context'>): Promise<FastifyReply> {
    const { reply, signal } = asked
    const { id, query, before, after_count: afterCount, same } = asked.parameters
    const projectId = asked.project.id
    const { reader, wallMs } = this.#dependencies
    const completeMs = await this.#completeUntil()
    const entry =
      (await findEntry(reader, projectId, id, { signal })) ??
      (await findEntry(reader, projectId, id, { signal }, receivedLate))
    if (entry === undefined) throw new Problem('entry_not_found')
    const own = query.condition
    const condition =
      same === undefined
        ? own
        : {
            ...own,
            sql: `(${own.sql}) AND service = {sameService:String}`,
            parameters: { ...own.parameters, sameService: entry.service },
          }
    const listing = {
      ...timesAllowed,
      receivedUntilMs: Math.max(wallMs(), Date.parse(entry.received_at)),
      last: { timestampUs: microsOf(entry.timestamp), id },
    }
    const around = (order: 'asc' | 'desc', limit: number): Promise<Page> =>
      limit === 0
        ? Promise.resolve({ rows: [], rest: undefined, limitedBy: undefined })
        : this.#search({ projectId, condition }, { ...listing, order }, limit, signal)
    const older = await around('desc', before)
    const newer = await around('asc', afterCount)
    const parts = {
      before: entriesJson(older.rows.toReversed()),
      entry: entryJson(entry),
      after: entriesJson(newer.rows),
    }
    return sendWithEntries(reply, parts, completeMs, { limited_by: older.limitedBy ?? newer.limitedBy })
  }

  async export(asked: Asked<'export'>): Promise<FastifyReply> {
    const { format } = asked.parameters
    const { selection, completeMs, nowMs } = await this.#prepare(asked)
    const all: Listing = { ...selection.range, order: 'asc', receivedUntilMs: nowMs }
    return asked.reply
      .type(format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson')
      .header('sluice-complete-until', isoOf(completeMs) ?? 'unknown')
      .header('content-disposition', `attachment; filename="logs.${format}"`)
      .send(Readable.from(this.#lines(asked, selection, all), { objectMode: false }))
  }

  async tail({ project, parameters, request, reply, signal }: Asked<'tail'>): Promise<FastifyReply> {
    const { query, from } = parameters
    const { tails, access } = this.#dependencies
    const position = await this.#positionOf(request.headers['last-event-id'], from)
    signal.throwIfAborted()
    const matches = matcher(query.query)
    const remove = tails.add(project.id, {
      sink: openStream(reply),
      text: query.text,
      condition: query.condition,
      matches: (row) => matches({ ...row, metadata: row.metadata_text }),
      position,
      check: () => access.projectOf(request),
    })
    reply.raw.once('close', remove)
    return reply
  }

  async #positionOf(lastEventId: string | string[] | undefined, from: Moment | undefined): Promise<Position> {
    const nowMs = this.#dependencies.wallMs()
    const resumed = parsePosition(String(lastEventId))
    // Browsers send an empty one before the first event.
    if (resumed === undefined && lastEventId)
      throw invalidParameter('Last-Event-ID', 'is not the id of an event')
    const position =
      resumed ??
      endOf(
        from === undefined ? ((await this.#completeUntil()) ?? nowMs) : Number(resolve(from, nowMs) / 1_000n),
      )
    if (nowMs - position.receivedMs > tailsLimits.resumeMs)
      throw invalidParameter('from', 'may be at most a day ago: read older entries with /v1/query/logs')
    return position
  }

  /** The answer would be wrong without it, and is right without its time. */
  #completeUntil(): Promise<number | null> {
    return this.#dependencies.completePoint.until().catch(() => null)
  }

  /** What an answer is about, and how much of it is final. */
  async #prepare(asked: AskedEntries) {
    const { query, from, until, after } = asked.parameters
    const { reader, completePoint, clock, wallMs } = this.#dependencies
    const projectId = asked.project.id
    const receivedMs =
      after === undefined
        ? 0
        : await waitUntilVisible(reader, completePoint, clock, { projectId, id: after }, asked)
    const completeMs = await this.#completeUntil()
    // Later than the receipt of everything that the answer must have.
    const nowMs = Math.max(wallMs(), receivedMs + 1, (completeMs ?? 0) + 1)
    const range = { fromUs: resolve(from, nowMs), untilUs: resolve(until, nowMs) }
    if (range.fromUs >= range.untilUs) throw invalidParameter('from', 'must be before until')
    return { selection: { projectId, condition: query.condition, range }, completeMs, nowMs }
  }

  async #search(
    selection: Omit<Selection, 'range'>,
    listing: Listing,
    limit: number,
    signal: AbortSignal,
  ): Promise<Page> {
    const { reader, clock, timeMaxMs: timeMs } = this.#dependencies
    const options = { reader, signal, timeMs, clock }
    return this.#orTooExpensive(
      { ...selection, range: listing },
      readPage(selection, listing, limit, options),
    )
  }

  async *#lines(
    { parameters: { format }, request, signal }: Asked<'export'>,
    selection: Selection,
    all: Listing,
  ): AsyncGenerator<string> {
    const lineOf = format === 'csv' ? entryCsv : (row: EntryRow): string => `${entryJson(row)}\n`
    if (format === 'csv') yield csvHead
    for (let rest: Listing | undefined = all; rest !== undefined;) {
      const page: Page = await this.#search(selection, rest, operationLimits.exportPageRows, signal)
      if (page.rows.length > 0) yield page.rows.map(lineOf).join('')
      rest = page.rest
      // An export may outlive the validity of its key.
      if (rest !== undefined) await this.#dependencies.access.projectOf(request)
    }
  }

  /** Answers with what is counted of the entries. */
  async #count(
    asked: AskedEntries,
    count: (reader: LogReader, selection: Selection, options: ReadOptions) => Promise<object>,
  ): Promise<FastifyReply> {
    const { selection, completeMs } = await this.#prepare(asked)
    const counts = await this.#orTooExpensive(selection, count(this.#dependencies.reader, selection, asked))
    return asked.reply.send({ ...counts, complete_until: isoOf(completeMs) })
  }

  /** The problem of a query that is too expensive says what it would read. */
  async #orTooExpensive<T>(selection: Selection, answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      if (!(error instanceof ReadLimitError)) throw error
      const { estimateMs: timeMs } = operationLimits
      const options = { signal: AbortSignal.timeout(timeMs), limits: { timeMs, rowsMax: 0, bytesMax: 0 } }
      const estimate = estimateRows(this.#dependencies.reader, selection, options)
      const rows = await estimate.catch(() => undefined)
      const size = rows === undefined ? 'too much' : `about ${rows.toLocaleString('en-US')} entries`
      throw new Problem(
        'query_too_expensive',
        `The query would read ${size}, and exceeds its limit of ${error.limit}. ` +
          'Narrow the time range, or search for a field with a value instead of a text.',
        { cause: error },
      )
    }
  }
}

const entriesJson = (rows: readonly EntryRow[]): string => `[${rows.map(entryJson).join(',')}]`

const isoOf = (epochMs: number | null): string | null => (epochMs === null ? null : isoMs(epochMs))

/** Sends an answer with entries, which are JSON already: their metadata is never parsed. @param others left out where undefined */
function sendWithEntries(
  reply: FastifyReply,
  parts: Readonly<Record<string, string>>,
  completeMs: number | null,
  others: Readonly<Record<string, unknown>>,
): FastifyReply {
  const members = Object.entries(parts).map(([name, json]) => `"${name}":${json}`)
  const rest = JSON.stringify({ ...others, complete_until: isoOf(completeMs) })
  return reply.type('application/json').send(`{${members.join(',')},${rest.slice(1)}`)
}
