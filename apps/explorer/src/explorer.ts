import { computed, type Signal, signal } from '@preact/signals'
import { type Api, type Counts, type Fields, type Page, type Parameters, Problem } from './api.ts'
import { type Histogram, widen } from './bars.ts'
import { type Entry, shortName } from './entry.ts'
import { highlights, parseQuery, type QueryError } from '@sluice/query-language'
import { PipelineWatch } from './pipeline.ts'
import { toggleTerm } from './query-text.ts'
import { RingBuffer } from './ring-buffer.ts'
import { follow } from './tail.ts'
import { isoOf, parseRange, type TimeRange } from './times.ts'
import { defaultView, readView, type View, writeView } from './view.ts'

/** What is loaded, and how the answer describes itself. */
interface Listed {
  /** Grows in place while pages arrive: a copy of 100,000 entries for each page would be felt. */
  readonly entries: readonly Entry[]
  readonly next: string | undefined
  readonly loading: boolean
  readonly problem: Problem | undefined
  readonly completeUntil: string | undefined
  readonly limitedBy: string | undefined
  readonly tookMs: number
}
interface Asked<Answer> {
  readonly loading: boolean
  readonly answer?: Answer
  readonly problem?: Problem
}
interface Tail {
  readonly paused: boolean
  readonly waiting: number
  /** Not shown, and why: the server sent a part, or the pause was longer than the buffer. */
  readonly skipped: number
  readonly dropped: number
  readonly problem: Problem | undefined
}
interface Chart {
  readonly histogram: Histogram
  readonly range: TimeRange
}

/** The first page is drawn soon; those that follow while scrolling are large. */
const FIRST_PAGE_ENTRIES = 200
const PAGE_ENTRIES = 1000
/** A tab stays below a few hundred megabytes. */
export const LISTED_ENTRIES_MAX = 100_000
/** What a tail keeps: ten seconds of the most that the server sends. */
const TAIL_ENTRIES_MAX = 10_000
const TAIL_DRAW_MS = 200
const TAIL_CHART_MS = 10_000
/** Browsers refuse an address that changes more often, as it would with each step of the cursor. */
const URL_MS = 150
const FACET_VALUES = 10
const CONTEXT_ENTRIES = 20
const RECENT_QUERIES_MAX = 20

const nothingListed: Listed = {
  entries: [],
  next: undefined,
  loading: true,
  problem: undefined,
  completeUntil: undefined,
  limitedBy: undefined,
  tookMs: 0,
}
const nothingTailed: Tail = { paused: false, waiting: 0, skipped: 0, dropped: 0, problem: undefined }

export interface Environment {
  readonly api: Api
  readonly storage: Pick<Storage, 'getItem' | 'setItem'>
  readonly location: Pick<Location, 'search' | 'pathname' | 'origin'>
  readonly history: Pick<History, 'pushState' | 'replaceState'>
}
type Stored = 'recent' | 'saved'

/** The state of the page, and everything that a person can do with it. */
export class Explorer {
  readonly api: Api
  readonly #environment: Environment
  readonly pipeline: PipelineWatch

  readonly project = signal<string | undefined>(undefined)
  readonly #scopes = signal<readonly string[]>([])
  readonly view = signal<View>(defaultView)
  /** The text in the search field, which may not have been searched for. */
  readonly draft = signal('')
  readonly errors = signal<readonly QueryError[]>([])
  readonly range = signal<TimeRange>({ fromMs: 0, untilMs: 1 })
  readonly listed = signal<Listed>(nothingListed)
  readonly chart = signal<Asked<Chart>>({ loading: true })
  readonly fields = signal<Asked<Fields>>({ loading: true })
  readonly facets = signal<Readonly<Record<string, Asked<Counts>>>>({})
  readonly tail = signal<Tail>(nothingTailed)
  readonly detail = signal<Asked<Entry | undefined>>({ loading: false })
  readonly saved = signal<readonly string[]>([])
  readonly recent = signal<readonly string[]>([])
  /** Whether the list shows its beginning. */
  readonly isAtTop = signal(true)
  /** The row that the keys are at. */
  readonly cursor = signal(0)
  /** A short message at the bottom: "Copied". */
  readonly notice = signal('')
  readonly marks = computed(() => {
    const parsed = parseQuery(this.view.value.query)
    return 'query' in parsed ? highlights(parsed.query) : []
  })

  #work = new AbortController()
  #noticeTimer: ReturnType<typeof setTimeout> | undefined
  #urlTimer: ReturnType<typeof setTimeout> | undefined
  #refreshTimer: ReturnType<typeof setInterval> | undefined
  #waiting = new RingBuffer<Entry>(TAIL_ENTRIES_MAX)

  constructor(environment: Environment) {
    this.#environment = environment
    this.api = environment.api
    this.pipeline = new PipelineWatch(environment.api)
    for (const name of ['saved', 'recent'] as const) this[name].value = this.#read(name)
  }

  #read(name: Stored): readonly string[] {
    try {
      const stored: unknown = JSON.parse(this.#environment.storage.getItem(`sluice.${name}`) ?? '[]')
      return Array.isArray(stored) ? stored.filter((text) => typeof text === 'string') : []
    } catch {
      return []
    }
  }

  #store(name: Stored, texts: readonly string[]): void {
    this[name].value = texts
    try {
      this.#environment.storage.setItem(`sluice.${name}`, JSON.stringify(texts))
    } catch {
      // Without storage they last as long as the page.
    }
  }

  say(text: string): void {
    this.notice.value = text
    clearTimeout(this.#noticeTimer)
    this.#noticeTimer = setTimeout(() => (this.notice.value = ''), 4000)
  }

  /** Reads the URL, as at the start and after Back. */
  restore(): void {
    const { search, pathname } = this.#environment.location
    this.view.value = readView(search, pathname)
    if (!this.can('read')) this.view.value = { ...this.view.value, page: 'pipeline' }
    this.draft.value = this.view.value.query
    this.run()
  }

  /** Changes the view and the URL. What only concerns the look makes no entry in the browser's history. */
  show(change: Partial<View>): void {
    const before = this.view.value
    const after = { ...before, ...change }
    if (change.query !== undefined) this.draft.value = change.query
    const isNewSearch = (['page', 'query', 'from', 'until', 'context', 'live', 'sameService'] as const).some(
      (member) => before[member] !== after[member],
    )
    this.view.value = after
    const url = writeView(after)
    clearTimeout(this.#urlTimer)
    if (isNewSearch) this.#environment.history.pushState(null, '', url)
    else this.#urlTimer = setTimeout(() => this.#environment.history.replaceState(null, '', url), URL_MS)
    if (isNewSearch) this.run()
    else if (before.refreshSeconds !== after.refreshSeconds) this.#scheduleRefresh()
    else if (before.selected !== after.selected) void this.#loadDetail()
    if (before.facets !== after.facets) for (const field of after.facets) void this.#countValues(field)
  }

  search(text: string): void {
    const query = text.trim()
    this.draft.value = query
    if (query === this.view.value.query) this.run()
    else this.show({ query, context: '', selected: '' })
    if (query !== '' && this.errors.value.length === 0)
      this.#store(
        'recent',
        [query, ...this.recent.value.filter((other) => other !== query)].slice(0, RECENT_QUERIES_MAX),
      )
  }

  toggleFilter(field: string, value: string, exclude: boolean): void {
    this.search(toggleTerm(this.view.value.query, field, value, exclude))
  }

  toggleSaved(text: string): void {
    const rest = this.saved.value.filter((other) => other !== text)
    this.#store('saved', rest.length < this.saved.value.length ? rest : [text, ...rest])
  }

  toggleIn(member: 'columns' | 'facets', name: string): void {
    const names = this.view.value[member]
    this.show({ [member]: names.includes(name) ? names.filter((other) => other !== name) : [...names, name] })
  }

  setRange({ fromMs, untilMs }: TimeRange): void {
    this.show({ from: isoOf(fromMs), until: isoOf(untilMs), live: false, context: '' })
  }

  setLive(live: boolean): void {
    const { from, until } = this.view.value
    this.show(
      live ? { live, context: '', from: until === 'now' ? from : defaultView.from, until: 'now' } : { live },
    )
  }

  zoomOut(): void {
    this.setRange(widen(this.range.value, this.api.nowMs()))
  }

  /** The link to an entry holds its time, so that it is found in years. */
  linkTo(entry: Entry): string {
    const atMs = Date.parse(entry.timestamp)
    const { columns, zone } = this.view.value
    const view = {
      ...defaultView,
      columns,
      zone,
      selected: entry.id,
      from: isoOf(atMs - 60_000),
      until: isoOf(atMs + 60_000),
    }
    return this.#environment.location.origin + writeView(view)
  }

  get parameters(): Parameters {
    const { fromMs, untilMs } = this.range.value
    return { query: this.view.value.query, from: isoOf(fromMs), until: isoOf(untilMs) }
  }

  /** Asks for everything that the page shows. @param quiet keeps what is shown until the new answer is here */
  run(quiet = false): void {
    this.#work.abort()
    this.#work = new AbortController()
    const { signal: work } = this.#work
    const { page, query, from, until, zone, live, context } = this.view.value
    if (page === 'pipeline') {
      clearInterval(this.#refreshTimer)
      if (this.can('admin')) void this.pipeline.watch(work)
      return
    }
    const parsed = parseQuery(query)
    this.errors.value = 'errors' in parsed ? parsed.errors : []
    const range = parseRange(from, until, this.api.nowMs(), zone)
    const refusal =
      this.errors.value.length > 0
        ? new Problem(400, {
            title: 'The query cannot be read',
            code: 'invalid_query',
            detail: this.errors.value[0]?.message,
          })
        : typeof range === 'string' &&
          new Problem(400, { title: 'The time range cannot be read', detail: range })
    this.tail.value = nothingTailed
    if (refusal !== false || typeof range === 'string') {
      this.listed.value = { ...nothingListed, loading: false, problem: refusal || undefined }
      this.chart.value = { loading: false }
      return
    }
    this.range.value = range
    if (!quiet) this.cursor.value = 0
    this.listed.value = quiet
      ? { ...this.listed.value, loading: true }
      : { ...nothingListed, entries: this.listed.value.entries }
    void this.#loadFirst(work, context, live)
    void this.#loadChart(work)
    void this.#loadCounts(work)
    void this.#loadDetail()
    this.#scheduleRefresh()
  }

  cancel(): void {
    this.#work.abort()
    this.listed.value = {
      ...this.listed.value,
      entries: [],
      loading: false,
      problem: new Problem(0, { title: 'Cancelled' }),
    }
  }

  #scheduleRefresh(): void {
    clearInterval(this.#refreshTimer)
    const { refreshSeconds, live } = this.view.value
    const { signal: work } = this.#work
    if (live) this.#refreshTimer = setInterval(() => this.#refreshChart(work), TAIL_CHART_MS)
    else if (refreshSeconds > 0)
      this.#refreshTimer = setInterval(() => {
        // What a person reads does not move, and an answer that takes longer than the interval is waited for.
        if (!this.isAtTop.value) this.#refreshChart(work)
        else if (!this.listed.value.loading) this.run(true)
      }, refreshSeconds * 1000)
  }

  #refreshChart(work: AbortSignal): void {
    const { from, until, zone } = this.view.value
    const range = parseRange(from, until, this.api.nowMs(), zone)
    if (work.aborted || typeof range === 'string') return
    this.range.value = range
    void this.#loadChart(work)
  }

  /** Runs a request. An answer to what the page no longer asks is dropped. */
  async #ask<Answer>(
    work: AbortSignal,
    request: Promise<Answer>,
    done: (answer: Answer) => void,
    failed: (problem: Problem) => void,
  ): Promise<void> {
    try {
      const answer = await request
      if (!work.aborted) done(answer)
    } catch (error) {
      if (work.aborted) return
      failed(
        error instanceof Problem
          ? error
          : new Problem(0, { title: 'The answer cannot be read', detail: String(error) }),
      )
    }
  }

  async #loadFirst(work: AbortSignal, context: string, live: boolean): Promise<void> {
    const startedMs = performance.now()
    const request =
      context === ''
        ? this.api.get('logs', { ...this.parameters, limit: FIRST_PAGE_ENTRIES }, work)
        : this.api.get('context', this.#contextParameters(context, CONTEXT_ENTRIES), work)
    await this.#ask(
      work,
      request,
      (page) => {
        const isAscending =
          context !== '' && (page.entries[0]?.timestamp ?? '') < (page.entries.at(-1)?.timestamp ?? '')
        this.#setListed(
          isAscending ? page.entries.toReversed() : [...page.entries],
          page,
          performance.now() - startedMs,
        )
        if (live) this.#startTail(work)
      },
      (problem) => this.#fail(problem),
    )
  }

  #setListed(entries: readonly Entry[], page: Page, tookMs: number): void {
    this.listed.value = {
      entries,
      next: page.next ?? undefined,
      loading: false,
      problem: undefined,
      completeUntil: page.complete_until ?? undefined,
      limitedBy: page.limited_by,
      tookMs,
    }
  }

  #fail(problem: Problem): void {
    if (problem.code === 'invalid_query') this.errors.value = problem.errors
    this.listed.value = { ...this.listed.value, entries: [], next: undefined, loading: false, problem }
  }

  #contextParameters(id: string, entries: number): Parameters {
    const same: Parameters = this.view.value.sameService ? { same: 'service' } : {}
    return { id, before: entries, after_count: entries, ...same }
  }

  /** The next page, when the list is scrolled near its end. */
  async loadMore(): Promise<void> {
    const { loading, next, entries, problem } = this.listed.value
    if (
      loading ||
      next === undefined ||
      problem !== undefined ||
      entries.length >= LISTED_ENTRIES_MAX ||
      this.view.value.live
    )
      return
    const { signal: work } = this.#work
    this.listed.value = { ...this.listed.value, loading: true }
    await this.#ask(
      work,
      this.api.get('logs', { ...this.parameters, limit: PAGE_ENTRIES, cursor: next }, work),
      (page) => {
        ;(entries as Entry[]).push(...page.entries)
        this.#setListed(
          entries,
          { ...page, complete_until: this.listed.value.completeUntil ?? null },
          this.listed.value.tookMs,
        )
      },
      (problemOfPage) => {
        this.listed.value = { ...this.listed.value, loading: false }
        this.say(problemOfPage.message)
      },
    )
  }

  async #loadChart(work: AbortSignal): Promise<void> {
    const range = this.range.value
    const request = this.api.get('histogram', this.parameters, work)
    await this.#load(work, this.chart, request, (histogram) => ({ histogram, range }))
  }

  async #loadCounts(work: AbortSignal): Promise<void> {
    // One after the other: the list and the chart come first, and the server limits what runs at once.
    for (const field of this.view.value.facets) if (!work.aborted) await this.#countValues(field)
    const request = this.api.get('fields', this.parameters, work)
    await this.#load(work, this.fields, request, ({ fields, ...rest }) => ({
      ...rest,
      fields: fields.map(({ name, count }) => ({ name: shortName(name), count })),
    }))
  }

  async #countValues(field: string): Promise<void> {
    const { signal: work } = this.#work
    const facet = signal<Asked<Counts>>(this.facets.value[field] ?? { loading: true })
    const stop = facet.subscribe((value) => (this.facets.value = { ...this.facets.peek(), [field]: value }))
    const request = this.api.get('values', { ...this.parameters, field, limit: FACET_VALUES }, work)
    await this.#load(work, facet, request, (answer) => answer)
    stop()
  }

  /** Keeps the last answer while the next one is on its way. */
  #load<Answer, Shown>(
    work: AbortSignal,
    target: Signal<Asked<Shown>>,
    request: Promise<Answer>,
    show: (answer: Answer) => Shown,
  ): Promise<void> {
    target.value = { ...target.peek(), loading: true }
    return this.#ask(
      work,
      request,
      (answer) => (target.value = { loading: false, answer: show(answer) }),
      (problem) => (target.value = { loading: false, problem }),
    )
  }

  async #loadDetail(): Promise<void> {
    const { selected } = this.view.value
    const known = this.listed.value.entries.find(({ id }) => id === selected) ?? this.detail.value.answer
    if (selected === '' || known?.id === selected) {
      this.detail.value =
        selected === '' || known === undefined ? { loading: false } : { loading: false, answer: known }
      return
    }
    const { signal: work } = this.#work
    this.detail.value = { loading: true }
    const request = this.api.get('context', { id: selected, before: 0, after_count: 0 }, work)
    await this.#load(work, this.detail, request, ({ entries }) => entries.find(({ id }) => id === selected))
  }

  /** Adds what arrives above the page that is listed. Draws a few times a second, however much arrives. */
  #startTail(work: AbortSignal): void {
    this.#waiting = new RingBuffer(TAIL_ENTRIES_MAX)
    // What the first page has can come again: it may be newer than the point at which the tail begins.
    const listedIds = new Set(this.listed.value.entries.map(({ id }) => id))
    const timer = setInterval(() => this.#drawTail(), TAIL_DRAW_MS)
    work.addEventListener('abort', () => clearInterval(timer))
    const update = (change: Partial<Tail>): void => {
      if (!work.aborted) this.tail.value = { ...this.tail.value, ...change }
    }
    const listener = {
      entries: (entries: readonly Entry[]) => {
        for (const entry of entries) if (!listedIds.has(entry.id)) this.#waiting.push(entry)
      },
      completeUntil: (completeUntil: string) => {
        if (!work.aborted) this.listed.value = { ...this.listed.value, completeUntil }
      },
      skipped: (count: number) => update({ skipped: this.tail.value.skipped + count }),
      connection: (problem: Problem | undefined) => update({ problem }),
    }
    void follow(this.api, { query: this.view.value.query }, listener, work)
  }

  #drawTail(): void {
    const tail = this.tail.value
    if (tail.paused) {
      if (tail.waiting !== this.#waiting.size || tail.dropped !== this.#waiting.dropped)
        this.tail.value = { ...tail, waiting: this.#waiting.size, dropped: this.#waiting.dropped }
      return
    }
    if (this.#waiting.size === 0) return
    const items = this.#waiting.take()
    this.listed.value = {
      ...this.listed.value,
      next: undefined,
      entries: [...items, ...this.listed.value.entries].slice(0, TAIL_ENTRIES_MAX),
    }
  }

  pauseTail(paused: boolean): void {
    if (!this.view.value.live || this.tail.value.paused === paused) return
    this.tail.value = { ...this.tail.value, paused, waiting: paused ? this.#waiting.size : 0 }
    if (!paused) this.#drawTail()
  }

  async start(): Promise<void> {
    try {
      const session = await this.api.session('GET')
      this.#scopes.value = session?.scopes ?? ['read']
      this.project.value = session?.project_id ?? ''
    } catch (error) {
      this.project.value = ''
      this.say(error instanceof Problem ? error.message : String(error))
    }
    if (this.project.value !== '') this.restore()
  }

  /** Whether the key of the session has the scope. */
  can(scope: 'read' | 'admin'): boolean {
    return this.#scopes.value.includes(scope)
  }

  /** @returns what is wrong with the key */
  async signIn(key: string): Promise<string | undefined> {
    try {
      await this.api.session('POST', key)
      await this.start()
      return undefined
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      if (error.status === 401) return 'This key is unknown, expired or revoked.'
      return error.status === 403
        ? 'This key may only send entries: it lacks the scope “read”.'
        : `${error.message}. ${error.detail}`
    }
  }

  async signOut(): Promise<void> {
    await this.api.session('DELETE').catch(() => undefined)
    this.signedOut()
  }

  /** The session has ended here or on the server. */
  signedOut(): void {
    this.#work.abort()
    clearInterval(this.#refreshTimer)
    this.project.value = ''
  }

  /** Values or names for the search field, among the entries that match the rest of the query. */
  async suggest(field: string, restOfQuery: string, work: AbortSignal): Promise<Counts['values']> {
    const query = 'errors' in parseQuery(restOfQuery) ? '' : restOfQuery
    const { values } = await this.api.get('values', { ...this.parameters, query, field, limit: 100 }, work)
    return values
  }
}
