import { HttpProblem } from '@sluice/access'
import { type LogReader, ReadLimitError } from '@sluice/clickhouse'
import { type Logger, PeriodicTask, type Semaphore } from '@sluice/runtime'
import { entryJson, type EntryRow, entrySelection } from '../entries.ts'
import { ID_ORDER } from '../selection.ts'
import type { CompletePoint } from '../visibility.ts'
import { endOf, isAfter, type Position } from './position.ts'
import type { Viewer } from './viewer.ts'

const tailLimits = {
  pollMs: 1_000,
  /** How far back the shared query may begin. Viewers further behind have queries of their own: after a deployment, all viewers return at once. */
  sharedMs: 30_000,
  /**
   * The most that one query covers. ClickHouse sorts its entries in memory. Less, down to `spanMinMs`, if that is too much. A viewer that is
   * behind goes on with more after a query with fewer than `sparseRows`.
   */
  spanMs: 10_000,
  spanMinMs: 100,
  sparseRows: 1_000,
  /** The conditions of different viewers in the shared query. ClickHouse reads all entries of a second faster than longer ones. */
  conditionCharactersMax: 20_000,
  /** A key that is revoked stops working in five seconds. */
  checkPolls: 4,
} as const

export interface TailDependencies {
  readonly reader: LogReader
  readonly completePoint: CompletePoint
  /** Queries of viewers that are behind, of all projects. */
  readonly permits: Semaphore
  readonly logger: Logger
}

/**
 * Feeds the viewers of a project. Once a second it reads the entries that became complete, in the order of their receipt, for all viewers.
 * Nothing becomes visible later in what it has read, so no viewer misses an entry, or gets one twice: its position is enough to go on.
 *
 * A viewer: behind (a query of its own, as fast as it reads) → shared. It advances only over what was offered to it, so a query that fails is
 * repeated from there.
 */
export class ProjectTail {
  readonly #projectId: string
  readonly #dependencies: TailDependencies
  readonly #viewers = new Set<Viewer>()
  readonly #stopping = new AbortController()
  readonly #task: PeriodicTask
  #spanMs: number = tailLimits.spanMs
  #polls = 0

  constructor(projectId: string, dependencies: TailDependencies) {
    this.#projectId = projectId
    this.#dependencies = dependencies
    this.#task = new PeriodicTask(tailLimits.pollMs, () => this.#poll())
  }

  get size(): number {
    return this.#viewers.size
  }

  add(viewer: Viewer): void {
    this.#viewers.add(viewer)
    this.#task.runNow()
  }

  remove(viewer: Viewer): void {
    this.#viewers.delete(viewer)
  }

  /** Ends the queries. */
  stop(): void {
    this.#task.stop()
    this.#stopping.abort()
  }

  /** Never rejects. */
  async #poll(): Promise<void> {
    const { completePoint, logger } = this.#dependencies
    try {
      this.#polls += 1
      if (this.#polls % tailLimits.checkPolls === 0) await this.#check()
      for (;;) {
        const completeMs = await completePoint.until()
        if (completeMs === null) {
          for (const viewer of this.#viewers) viewer.report(null)
          return
        }
        const shared: Viewer[] = []
        for (const viewer of this.#viewers) {
          if (viewer.isBehind) continue
          if (completeMs - viewer.position.receivedMs <= tailLimits.sharedMs) shared.push(viewer)
          else void this.#catchUp(viewer)
        }
        if (shared.length === 0) return
        const { untilMs } = await this.#deliver(shared, completeMs, this.#spanMs)
        this.#spanMs = tailLimits.spanMs
        if (untilMs >= completeMs) return
      }
    } catch (error) {
      if (error instanceof ReadLimitError)
        this.#spanMs = Math.max(tailLimits.spanMinMs, Math.floor(this.#spanMs / 2))
      if (!this.#stopping.signal.aborted) logger.warn({ err: error }, 'tail waits')
      // Proxies close a connection that is silent.
      for (const viewer of this.#viewers) viewer.report(null)
    }
  }

  /** Disconnects viewers whose key is no longer valid. */
  async #check(): Promise<void> {
    await Promise.all(
      Array.from(this.#viewers, async (viewer) => {
        const { check, sink } = viewer.options
        const isRefused = await check().then(
          () => false,
          // While the registry is unavailable, nobody is refused.
          (error: unknown) => error instanceof HttpProblem && error.status < 500,
        )
        if (isRefused) sink.close()
      }),
    )
  }

  /** Reads for one viewer until it is near the others, at its own speed. It has a permit for each query, and none while it reads. Never rejects. */
  async #catchUp(viewer: Viewer): Promise<void> {
    const { completePoint, permits, logger } = this.#dependencies
    viewer.isBehind = true
    try {
      let spanMs = this.#spanMs
      for (;;) {
        await viewer.options.sink.drained()
        if (!this.#viewers.has(viewer)) return
        const completeMs = await completePoint.until()
        if (completeMs === null || completeMs - viewer.position.receivedMs <= tailLimits.sharedMs) return
        const { rows } = await permits.run(() => this.#deliver([viewer], completeMs, spanMs))
        if (rows < tailLimits.sparseRows) spanMs *= 2
      }
    } catch (error) {
      // The next poll begins again.
      if (!this.#stopping.signal.aborted) logger.warn({ err: error }, 'tail waits')
    } finally {
      viewer.isBehind = false
    }
  }

  /** Reads a span of entries, and offers them to viewers. @returns the end of the span @throws as `LogReader.stream` */
  async #deliver(
    viewers: readonly Viewer[],
    completeMs: number,
    spanMs: number,
  ): Promise<{ untilMs: number; rows: number }> {
    const { reader } = this.#dependencies
    const from = viewers.map(({ position }) => position).reduce((a, b) => (isAfter(a, b) ? b : a))
    const untilMs = Math.min(completeMs, from.receivedMs + spanMs)
    const groups = [...Map.groupBy(viewers, ({ options }) => options.text).values()]
    let count = 0
    for (const viewer of viewers) viewer.expect(untilMs)
    if (untilMs > from.receivedMs) {
      const query = entriesAfter(from, untilMs, groups)
      const options = { signal: this.#stopping.signal, limits: { rowsMax: 0, bytesMax: 0 } }
      for await (const rows of reader.stream<EntryRow>(this.#projectId, query, options)) {
        count += rows.length
        offerAll(rows, groups)
        // The next query goes on here. The others do not wait for one that is not behind.
        if (viewers.some(({ isBehind, isBusy }) => isBehind && isBusy))
          return { untilMs: from.receivedMs, rows: Infinity }
      }
    }
    for (const viewer of viewers) {
      viewer.flush(endOf(untilMs))
      viewer.report(untilMs)
    }
    return { untilMs, rows: count }
  }
}

function offerAll(rows: readonly EntryRow[], groups: readonly (readonly Viewer[])[]): void {
  let at: Position | undefined
  for (const row of rows) {
    at = { receivedMs: Date.parse(row.received_at), id: row.id }
    let text: string | undefined
    const json = (): string => (text ??= entryJson(row))
    for (const group of groups) {
      if (group[0]?.options.matches(row) !== true) continue
      for (const viewer of group) viewer.offer(at, json)
    }
  }
  if (at !== undefined) for (const viewer of groups.flat()) viewer.flush(at)
}

const time = (name: string): string => `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`

/** The entries that one of the groups wants, in the order of their receipt. */
function entriesAfter(from: Position, untilMs: number, groups: readonly (readonly Viewer[])[]) {
  const parameters: Record<string, unknown> = {
    fromMs: String(from.receivedMs),
    fromId: from.id,
    untilMs: String(untilMs),
  }
  const characters = groups.reduce((sum, [viewer]) => sum + (viewer?.options.condition.sql.length ?? 0), 0)
  const conditions = groups.length > 1 && characters > tailLimits.conditionCharactersMax ? [] : groups
  const wanted = conditions.map(([viewer], index) => {
    const { sql, parameters: own } = viewer?.options.condition ?? { sql: 'true', parameters: {} }
    for (const [name, value] of Object.entries(own)) parameters[`v${index}${name}`] = value
    // The names of its parameters are those of every condition.
    return `(${sql.replaceAll(/\{(q\d+):/g, `{v${index}$1:`)})`
  })
  return {
    sql: (source: string) => `SELECT ${entrySelection} ${source}
      AND received_at >= ${time('fromMs')} AND received_at <= ${time('untilMs')}
      AND (received_at > ${time('fromMs')} OR ${ID_ORDER} > toUInt128({fromId:UUID}))
      AND (${wanted.length === 0 ? 'true' : wanted.join(' OR ')}) ORDER BY received_at, ${ID_ORDER}`,
    parameters,
  }
}
