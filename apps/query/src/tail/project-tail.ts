import { HttpProblem } from '@sluice/access'
import { type LogReader, ReadLimitError } from '@sluice/clickhouse'
import { type Logger, PeriodicTask, processClock, type Semaphore, withTimeout } from '@sluice/runtime'
import { entryJson, type EntryRow, entrySelection } from '../entries.ts'
import { ID_ORDER, timeOfMs } from '../selection.ts'
import type { CompletePoint } from '../visibility.ts'
import { endOf, isAfter, type Position } from './position.ts'
import type { Viewer } from './viewer.ts'

const tailLimits = {
  /**
   * Between two polls. Under load, entries become complete with each insert, every half a second: a poll comes right after one, within
   * `pollMaxMs`, so that an entry waits for at most one more insert. For that it is asked every `askMs`.
   */
  pollMs: 900,
  pollMaxMs: 1_500,
  askMs: 150,
  /** A viewer further behind misses nothing because it reads slowly: it has as much time as it needs. */
  liveMs: 5_000,
  /** Viewers that are behind share queries if they are about as far: after a deployment or a freeze, all of them. */
  togetherMs: 30_000,
  /**
   * The most that one query covers. ClickHouse sorts its entries in memory. Less, down to `spanMinMs`, if that is too much. Viewers that are
   * behind go on with more after a query with fewer than `sparseRows`.
   */
  spanMs: 10_000,
  spanMinMs: 100,
  sparseRows: 1_000,
  /** The conditions of different viewers in the shared query. ClickHouse reads all entries of a second faster than longer ones. */
  conditionCharactersMax: 20_000,
  /** A key that is revoked stops working in five seconds. */
  checkPolls: 3,
} as const

export interface TailDependencies {
  readonly reader: Pick<LogReader, 'stream'>
  readonly completePoint: CompletePoint
  /** Queries of viewers that are behind, of all projects. */
  readonly permits: Semaphore
  readonly logger: Logger
}

/**
 * Feeds the viewers of a project. Once a second it reads the entries that became complete, in the order of their receipt, for all viewers.
 * Nothing becomes visible later in what it has read, so no viewer misses an entry, or gets one twice: its position is enough to go on.
 *
 * A viewer: behind (with those that are as far and read as fast) ⇄ live (with all others). It advances only over what was offered to it, so a
 * query that fails is repeated from there.
 */
export class ProjectTail {
  readonly #projectId: string
  readonly #dependencies: TailDependencies
  readonly #viewers = new Set<Viewer>()
  readonly #stopping = new AbortController()
  readonly #task: PeriodicTask
  #polls = 0
  #polledAtMs = -Infinity
  #askedMs: number | null | undefined

  constructor(projectId: string, dependencies: TailDependencies) {
    this.#projectId = projectId
    this.#dependencies = dependencies
    this.#task = new PeriodicTask(tailLimits.askMs, () => this.#ask())
  }

  get size(): number {
    return this.#viewers.size
  }

  add(viewer: Viewer): void {
    this.#viewers.add(viewer)
    this.#polledAtMs = -Infinity
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
  async #ask(): Promise<void> {
    const { completePoint, logger } = this.#dependencies
    const sinceMs = processClock.nowMs() - this.#polledAtMs
    if (sinceMs < tailLimits.pollMs - tailLimits.askMs) return
    try {
      const completeMs = await completePoint.until()
      const isInserted = completeMs !== this.#askedMs && sinceMs >= tailLimits.pollMs
      this.#askedMs = completeMs
      if (isInserted || sinceMs >= tailLimits.pollMaxMs) await this.#poll(completeMs)
    } catch (error) {
      if (!this.#stopping.signal.aborted) logger.warn({ err: error }, 'tail waits')
      reportUnknown(this.#viewers)
    }
  }

  async #poll(completeMs: number | null): Promise<void> {
    this.#polledAtMs = processClock.nowMs()
    this.#polls += 1
    if (this.#polls % tailLimits.checkPolls === 0) await this.#check()
    if (completeMs === null) return reportUnknown(this.#viewers)
    const { live = [], behind = [] } = Object.groupBy(this.#viewers, (viewer) =>
      isLive(viewer, completeMs) && !viewer.isBehind ? 'live' : 'behind',
    )
    // They may wait for a permit. Proxies close a connection that is silent.
    reportUnknown(behind)
    const waiting = behind.filter(({ isBehind }) => !isBehind)
    const slot = ({ position }: Viewer): number => Math.floor(position.receivedMs / tailLimits.togetherMs)
    for (const group of Map.groupBy(waiting, slot).values()) void this.#catchUp(group)
    if (live.length > 0) await this.#deliver(live, completeMs, tailLimits.spanMs)
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

  /** Reads for viewers until they are live, as fast as they read. They have a permit for each query, and none while they read. Never rejects. */
  async #catchUp(viewers: readonly Viewer[]): Promise<void> {
    const { completePoint, permits, logger } = this.#dependencies
    let group = viewers
    for (const viewer of group) viewer.isBehind = true
    try {
      let spanMs: number = tailLimits.spanMs
      for (;;) {
        const drained = Promise.all(group.map(({ options }) => options.sink.drained()))
        await withTimeout(drained, tailLimits.pollMs).catch(() => undefined)
        // The others do not wait for those that read more slowly.
        for (const viewer of group) viewer.isBehind = !viewer.isBusy && this.#viewers.has(viewer)
        group = group.filter(({ isBehind }) => isBehind)
        const completeMs = await completePoint.until()
        if (completeMs === null || group.every((viewer) => isLive(viewer, completeMs))) return
        const read = await permits.run(() => this.#deliver(group, completeMs, spanMs))
        spanMs = read.rows < tailLimits.sparseRows ? read.spanMs * 2 : read.spanMs
      }
    } catch (error) {
      // The next poll begins again.
      if (!this.#stopping.signal.aborted) logger.warn({ err: error }, 'tail waits')
    } finally {
      for (const viewer of group) viewer.isBehind = false
    }
  }

  /** Reads a span of entries, shorter if that is too much, and offers them to viewers. @throws as `LogReader.stream` */
  async #deliver(
    viewers: readonly Viewer[],
    completeMs: number,
    spanMs: number,
  ): Promise<{ rows: number; spanMs: number }> {
    const from = viewers.map(({ position }) => position).reduce((a, b) => (isAfter(a, b) ? b : a))
    const untilMs = Math.min(completeMs, from.receivedMs + spanMs)
    const groups = [...Map.groupBy(viewers, ({ options }) => options.text).values()]
    let count = 0
    for (const viewer of viewers) viewer.expect(untilMs)
    try {
      const query = entriesAfter(from, untilMs, groups)
      const options = { signal: this.#stopping.signal, limits: { rowsMax: 0, bytesMax: 0 }, isUrgent: true }
      const answer = this.#dependencies.reader.stream<EntryRow>(this.#projectId, query, options)
      for await (const rows of untilMs > from.receivedMs ? answer : []) {
        count += rows.length
        offerAll(rows, groups)
        // The next query goes on here. Those that are live miss entries instead.
        if (viewers.some(({ isBehind, isBusy }) => isBehind && isBusy)) return { rows: Infinity, spanMs }
      }
    } catch (error) {
      const shorterMs = Math.floor((untilMs - from.receivedMs) / 2)
      if (!(error instanceof ReadLimitError) || shorterMs < tailLimits.spanMinMs) throw error
      reportUnknown(viewers)
      return this.#deliver(viewers, completeMs, shorterMs)
    }
    for (const viewer of viewers) {
      viewer.flush(endOf(untilMs))
      // Others are further.
      if (viewer.position.receivedMs <= untilMs) viewer.report(untilMs)
    }
    return { rows: count, spanMs }
  }
}

const isLive = ({ position }: Viewer, completeMs: number): boolean =>
  completeMs - position.receivedMs <= tailLimits.liveMs

function reportUnknown(viewers: Iterable<Viewer>): void {
  for (const viewer of viewers) viewer.report(null)
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
      AND received_at >= ${timeOfMs('fromMs')} AND received_at <= ${timeOfMs('untilMs')}
      AND (received_at > ${timeOfMs('fromMs')} OR ${ID_ORDER} > toUInt128({fromId:UUID}))
      AND (${wanted.length === 0 ? 'true' : wanted.join(' OR ')}) ORDER BY received_at, ${ID_ORDER}`,
    parameters,
  }
}
