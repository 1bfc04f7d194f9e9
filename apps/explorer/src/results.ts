import { computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import { highlights, parseQuery } from '@sluice/query-language'
import type { Api, Asked, Completeness, Counts, Fields, Page, Parameters, ProblemBody } from './api.ts'
import { ask, Problem } from './api.ts'
import type { Histogram } from './bars.ts'
import { type Entry, shortName } from './entry.ts'
import { follow } from './tail.ts'
import { isoOf, parseRange, type TimeRange } from './times.ts'
import type { View } from './view.ts'

/** What is listed, and how the answer describes itself. */
interface Listed {
  /** Newest first. Grows in place while pages arrive: a copy of 100,000 entries for each page would be felt. */
  readonly entries: readonly Entry[]
  readonly next: string | undefined
  readonly loading: boolean
  readonly problem: Problem | undefined
  readonly completeUntil: string | undefined
  readonly limitedBy: string | undefined
  readonly tookMs: number
}
interface Tail {
  readonly paused: boolean
  /** What arrived during a pause, newest first. */
  readonly waiting: readonly Entry[]
  /** Not shown, and why: the server sent a part, or the pause was longer than what is kept. */
  readonly skipped: number
  readonly dropped: number
  readonly problem: Problem | undefined
}
interface Chart {
  readonly histogram: Histogram
  readonly range: TimeRange
}
interface Context extends Completeness {
  readonly before: readonly Entry[]
  readonly entry: Entry
  readonly after: readonly Entry[]
}

/** The first page is drawn soon; those that follow while scrolling are large. */
const FIRST_PAGE_ENTRIES = 200
const PAGE_ENTRIES = 1000
/** A tab stays below a few hundred megabytes. */
export const LISTED_ENTRIES_MAX = 100_000
/** What a tail keeps: ten seconds of the most that the server sends. */
const TAIL_ENTRIES_MAX = 10_000
const TAIL_CHART_MS = 10_000
const FACET_VALUES = 10
const SUGGESTED_VALUES = 100
const CONTEXT_ENTRIES = 20

const nothingListed: Listed = {
  entries: [],
  next: undefined,
  loading: true,
  problem: undefined,
  completeUntil: undefined,
  limitedBy: undefined,
  tookMs: 0,
}
const nothingTailed: Tail = { paused: false, waiting: [], skipped: 0, dropped: 0, problem: undefined }
const noErrors: Problem['errors'] = []

/** What is loaded for a view: the list and its tail, the chart, the counts, and the entry whose details are open. */
export class Results {
  readonly range = signal<TimeRange>({ fromMs: 0, untilMs: 1 })
  readonly listed = signal<Listed>(nothingListed)
  readonly tail = signal<Tail>(nothingTailed)
  readonly chart = signal<Asked<Chart>>({ loading: true })
  readonly fields = signal<Asked<Fields>>({ loading: true })
  readonly detail = signal<Asked<Entry>>({ loading: false })
  /** Whether the list shows its beginning. */
  readonly isAtTop = signal(true)
  /** The row that the keys are at. */
  readonly cursor = signal(0)
  /** What is wrong in the text of the query. */
  readonly errors = computed(() => this.listed.value.problem?.errors ?? noErrors)
  /** What the messages contain that match. */
  readonly marks = computed(() => {
    const parsed = this.#parsed.value
    return 'query' in parsed ? highlights(parsed.query) : []
  })
  readonly #api: Api
  readonly #view: ReadonlySignal<View>
  readonly #say: (text: string) => void
  readonly #query = computed(() => this.#view.value.query)
  readonly #parsed = computed(() => parseQuery(this.#query.value))
  readonly #facets = new Map<string, Signal<Asked<Counts>>>()
  #work = new AbortController()

  constructor(api: Api, view: ReadonlySignal<View>, say: (text: string) => void) {
    this.#api = api
    this.#view = view
    this.#say = say
    const refreshMs = computed(() => (view.value.live ? TAIL_CHART_MS : view.value.refreshSeconds * 1000))
    effect(() => {
      if (refreshMs.value === 0) return undefined
      const timer = setInterval(() => this.#refresh(), refreshMs.value)
      return () => clearInterval(timer)
    })
  }

  get parameters(): Parameters {
    const { fromMs, untilMs } = this.range.value
    return { query: this.#query.value, from: isoOf(fromMs), until: isoOf(untilMs) }
  }

  /** The most frequent values of a field. */
  facet(field: string): Signal<Asked<Counts>> {
    const facet = this.#facets.get(field) ?? signal<Asked<Counts>>({ loading: false })
    this.#facets.set(field, facet)
    return facet
  }

  /** Requests everything. @param quiet keeps the list until the new answer has arrived */
  run(quiet = false): void {
    this.stop()
    this.#work = new AbortController()
    const { signal: work } = this.#work
    this.tail.value = nothingTailed
    const parsed = this.#parsed.value
    if ('errors' in parsed) {
      const { errors } = parsed
      const title = 'The query cannot be read'
      return this.#refuse({ title, code: 'invalid_query', detail: errors[0]?.message, errors })
    }
    const range = this.#readRange()
    if (typeof range === 'string')
      return this.#refuse({ title: 'The time range cannot be read', detail: range })
    this.range.value = range
    if (quiet) this.#list({ loading: true })
    else {
      this.cursor.value = 0
      this.listed.value = { ...nothingListed, entries: this.listed.value.entries }
    }
    void this.#loadList(work)
    void this.#loadChart(work)
    void this.#loadCounts(work)
    return this.loadDetail()
  }

  /** No answer that is on its way is shown. */
  stop(): void {
    this.#work.abort()
    const parts = [this.chart, this.fields, this.detail, ...this.#facets.values()] as Signal<Asked<unknown>>[]
    for (const part of parts) if (part.peek().loading) part.value = { ...part.peek(), loading: false }
  }

  cancel(): void {
    this.stop()
    this.#fail(new Problem(0, { title: 'Cancelled' }))
  }

  #refuse(body: ProblemBody): void {
    this.chart.value = { loading: false }
    this.#fail(new Problem(400, body))
  }

  #fail(problem: Problem): void {
    this.listed.value = { ...nothingListed, loading: false, problem }
  }

  #readRange(): TimeRange | string {
    const { from, until, zone } = this.#view.value
    return parseRange(from, until, this.#api.nowMs(), zone)
  }

  #refresh(): void {
    const { signal: work } = this.#work
    // An answer that takes longer than the interval is waited for.
    if (work.aborted || this.listed.value.loading) return
    // What a person reads does not move.
    if (!this.#view.value.live && this.isAtTop.value) return this.run(true)
    const range = this.#readRange()
    if (typeof range === 'string') return
    this.range.value = range
    void this.#loadChart(work)
  }

  #list(change: Partial<Listed>): void {
    this.listed.value = { ...this.listed.value, ...change }
  }

  async #loadList(work: AbortSignal): Promise<void> {
    const { context, live } = this.#view.value
    const startedMs = performance.now()
    try {
      const page =
        context === ''
          ? await this.#api.get<Page>('logs', { ...this.parameters, limit: FIRST_PAGE_ENTRIES }, work)
          : await this.#loadContext(context, work)
      if (work.aborted) return
      this.listed.value = {
        entries: [...page.entries],
        next: live ? undefined : (page.next ?? undefined),
        loading: false,
        problem: undefined,
        completeUntil: page.complete_until ?? undefined,
        limitedBy: page.limited_by,
        tookMs: performance.now() - startedMs,
      }
      if (live) void this.#follow(work)
    } catch (error) {
      if (!work.aborted) this.#fail(Problem.of(error))
    }
  }

  async #loadContext(id: string, work: AbortSignal): Promise<Page> {
    const same: Parameters = this.#view.value.sameService ? { same: 'service' } : {}
    const parameters = { id, before: CONTEXT_ENTRIES, after_count: CONTEXT_ENTRIES, ...same }
    const { before, entry, after, ...rest } = await this.#api.get<Context>('context', parameters, work)
    return { ...rest, entries: [...before, entry, ...after].toReversed() }
  }

  /** The next page, when the list is scrolled near its end. */
  async loadMore(): Promise<void> {
    const { loading, next: cursor, entries } = this.listed.value
    if (loading || cursor === undefined || entries.length >= LISTED_ENTRIES_MAX) return
    const { signal: work } = this.#work
    this.#list({ loading: true })
    try {
      const parameters = { ...this.parameters, limit: PAGE_ENTRIES, cursor }
      const { entries: more, next, limited_by } = await this.#api.get<Page>('logs', parameters, work)
      if (work.aborted) return
      ;(entries as Entry[]).push(...more)
      this.#list({ loading: false, next: next ?? undefined, limitedBy: limited_by })
    } catch (error) {
      if (work.aborted) return
      this.#list({ loading: false })
      this.#say(Problem.of(error).message)
    }
  }

  async #loadChart(work: AbortSignal): Promise<void> {
    const range = this.range.value
    const histogram = this.#api.get<Histogram>('histogram', this.parameters, work)
    await ask(
      this.chart,
      work,
      histogram.then((answer) => ({ histogram: answer, range })),
    )
  }

  /** One after the other: the list and the chart come first, and the server limits what runs at once. */
  async #loadCounts(work: AbortSignal): Promise<void> {
    for (const field of this.#view.value.facets) {
      await this.countValues(field)
      if (work.aborted) return
    }
    const fields = this.#api.get<Fields>('fields', this.parameters, work)
    await ask(
      this.fields,
      work,
      fields.then((answer) => ({
        ...answer,
        fields: answer.fields.map(({ name, count }) => ({ name: shortName(name), count })),
      })),
    )
  }

  async countValues(field: string): Promise<void> {
    const { signal: work } = this.#work
    const parameters = { ...this.parameters, field, limit: FACET_VALUES }
    await ask(this.facet(field), work, this.#api.get('values', parameters, work))
  }

  /** Of the entry that is selected. */
  loadDetail(): void {
    const { selected: id } = this.#view.value
    const known = [...this.listed.value.entries, this.detail.value.answer].find((entry) => entry?.id === id)
    const { signal: work } = this.#work
    if (id === '' || known !== undefined) this.detail.value = { loading: false, answer: known }
    else {
      this.detail.value = { loading: true }
      const context = this.#api.get<Context>('context', { id, before: 0, after_count: 0 }, work)
      void ask(
        this.detail,
        work,
        context.then(({ entry }) => entry),
      )
    }
  }

  /** Adds what arrives above the page that is listed. */
  #follow(work: AbortSignal): Promise<void> {
    const { entries: listed, completeUntil } = this.listed.value
    // The tail begins where the page is complete, and sends again what the page has of later entries.
    const listedIds = new Set(listed.map(({ id }) => id))
    const from: Parameters = completeUntil === undefined ? {} : { from: completeUntil }
    return follow(
      this.#api,
      { query: this.#query.value, ...from },
      work,
      ({ entries = [], count = 0, complete_until: until }) => {
        this.#arrive(entries.filter(({ id }) => !listedIds.has(id)).toReversed())
        if (count > 0) this.tail.value = { ...this.tail.value, skipped: this.tail.value.skipped + count }
        if (typeof until === 'string') this.#list({ completeUntil: until })
      },
      (problem) => (this.tail.value = { ...this.tail.value, problem }),
    )
  }

  /** @param arrived newest first */
  #arrive(arrived: readonly Entry[]): void {
    if (arrived.length === 0) return
    const tail = this.tail.value
    const kept = tail.paused ? tail.waiting : this.listed.value.entries
    const all = [...arrived, ...kept]
    const newest = all.slice(0, TAIL_ENTRIES_MAX)
    if (tail.paused)
      this.tail.value = {
        ...tail,
        waiting: newest,
        dropped: tail.dropped + all.length - newest.length,
      }
    else this.#list({ entries: newest })
  }

  pauseTail(paused: boolean): void {
    const tail = this.tail.value
    if (!this.#view.value.live || tail.paused === paused) return
    this.tail.value = { ...tail, paused, waiting: [], dropped: 0 }
    this.#arrive(tail.waiting)
  }

  /** Values for the search field, among the entries that match the rest of the query. */
  async suggest(field: string, restOfQuery: string, work: AbortSignal): Promise<Counts['values']> {
    const query = 'errors' in parseQuery(restOfQuery) ? '' : restOfQuery
    const parameters = { ...this.parameters, query, field, limit: SUGGESTED_VALUES }
    const { values } = await this.#api.get<Counts>('values', parameters, work)
    return values
  }
}
