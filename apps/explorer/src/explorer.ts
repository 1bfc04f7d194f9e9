import { computed, effect, type Signal, signal } from '@preact/signals'
import { type Api, Problem } from './api.ts'
import { widen } from './bars.ts'
import type { Entry } from './entry.ts'
import { PipelineWatch } from './pipeline.ts'
import { toggleTerm } from './query-text.ts'
import { Results } from './results.ts'
import { isoOf, type TimeRange } from './times.ts'
import { defaultView, readView, type View, writeView } from './view.ts'

/** Browsers refuse an address that changes more often, as it would with each step of the cursor. */
const URL_MS = 150
const NOTICE_MS = 4000
const RECENT_QUERIES_MAX = 20
/** A link to an entry has the minutes around it. */
const LINK_MS = 60_000

/** Texts that the browser keeps. */
function keptTexts(key: string): Signal<readonly string[]> {
  const texts = signal(JSON.parse(localStorage.getItem(key) ?? '[]') as readonly string[])
  effect(() => localStorage.setItem(key, JSON.stringify(texts.value)))
  return texts
}

const searchMembers = ['page', 'query', 'from', 'until', 'context', 'live', 'sameService'] as const

/** The session, the view with its URL, and everything that a person can do with them. */
export class Explorer {
  readonly api: Api
  readonly results: Results
  readonly pipeline: PipelineWatch
  /** The project of the session: empty without a session, undefined until the server has answered. */
  readonly project = signal<string | undefined>(undefined)
  readonly view = signal<View>(defaultView)
  /** The text in the search field, which may not have been searched for. */
  readonly draft = signal('')
  readonly saved = keptTexts('sluice.saved')
  readonly recent = keptTexts('sluice.recent')
  /** A short message at the bottom: "Copied". */
  readonly notice = signal('')
  readonly #scopes = signal<readonly string[]>([])
  #noticeTimer: ReturnType<typeof setTimeout> | undefined
  #urlTimer: ReturnType<typeof setTimeout> | undefined

  constructor(api: Api) {
    this.api = api
    this.results = new Results(api, this.view, (text) => this.say(text))
    this.pipeline = new PipelineWatch(api)
    const isWatching = computed(
      () => Boolean(this.project.value) && this.view.value.page === 'pipeline' && this.can('admin'),
    )
    effect(() => {
      if (!isWatching.value) return undefined
      const work = new AbortController()
      void this.pipeline.watch(work.signal)
      return () => work.abort()
    })
  }

  say(text: string): void {
    this.notice.value = text
    clearTimeout(this.#noticeTimer)
    this.#noticeTimer = setTimeout(() => (this.notice.value = ''), NOTICE_MS)
  }

  /** Reads the URL, as at the start and after Back. */
  restore(): void {
    const view = readView(location.search, location.pathname)
    this.view.value = this.can('read') ? view : { ...view, page: 'pipeline' }
    this.draft.value = view.query
    this.run()
  }

  /** Changes the view and the URL. What only concerns the look makes no entry in the browser's history. */
  show(change: Partial<View>): void {
    const before = this.view.value
    const after = { ...before, ...change }
    if (change.query !== undefined) this.draft.value = change.query
    this.view.value = after
    const url = writeView(after)
    clearTimeout(this.#urlTimer)
    if (searchMembers.some((member) => before[member] !== after[member])) {
      history.pushState(null, '', url)
      return this.run()
    }
    this.#urlTimer = setTimeout(() => history.replaceState(null, '', url), URL_MS)
    if (before.selected !== after.selected) this.results.loadDetail()
    for (const field of after.facets) if (!before.facets.includes(field)) void this.results.countValues(field)
    return undefined
  }

  /** Requests everything that the page shows. */
  run(): void {
    if (this.view.value.page === 'entries') this.results.run()
    else this.results.stop()
  }

  search(text: string): void {
    const query = text.trim()
    this.draft.value = query
    if (query === this.view.value.query) this.run()
    else this.show({ query, context: '', selected: '' })
    if (query === '' || this.results.errors.value.length > 0) return
    const others = this.recent.value.filter((other) => other !== query)
    this.recent.value = [query, ...others].slice(0, RECENT_QUERIES_MAX)
  }

  toggleFilter(field: string, value: string, exclude: boolean): void {
    this.search(toggleTerm(this.view.value.query, field, value, exclude))
  }

  toggleSaved(text: string): void {
    const { value } = this.saved
    this.saved.value = value.includes(text) ? value.filter((other) => other !== text) : [text, ...value]
  }

  toggleIn(member: 'columns' | 'facets', name: string): void {
    const names = this.view.value[member]
    this.show({ [member]: names.includes(name) ? names.filter((other) => other !== name) : [...names, name] })
  }

  setRange({ fromMs, untilMs }: TimeRange): void {
    this.show({ from: isoOf(fromMs), until: isoOf(untilMs), live: false, context: '' })
  }

  /** @param by a part of the range: 1 is the one after it */
  shiftRange(by: number): void {
    const { fromMs, untilMs } = this.results.range.value
    const ms = (untilMs - fromMs) * by
    this.setRange({ fromMs: fromMs + ms, untilMs: untilMs + ms })
  }

  zoomOut(): void {
    this.setRange(widen(this.results.range.value, this.api.nowMs()))
  }

  setLive(live: boolean): void {
    const { from, until } = this.view.value
    this.show(
      live ? { live, context: '', from: until === 'now' ? from : defaultView.from, until: 'now' } : { live },
    )
  }

  /** The link to an entry holds its time, so that it is found in years. */
  linkTo({ id, timestamp }: Entry): string {
    const atMs = Date.parse(timestamp)
    const { columns, zone } = this.view.value
    const around = { from: isoOf(atMs - LINK_MS), until: isoOf(atMs + LINK_MS) }
    return location.origin + writeView({ ...defaultView, ...around, columns, zone, selected: id })
  }

  /** Whether the key of the session has the scope. */
  can(scope: 'read' | 'admin'): boolean {
    return this.#scopes.value.includes(scope)
  }

  async start(): Promise<void> {
    try {
      const session = await this.api.session('GET')
      this.#scopes.value = session?.scopes ?? []
      this.project.value = session?.project_id ?? ''
    } catch (error) {
      this.project.value = ''
      this.say(Problem.of(error).message)
    }
    if (this.project.value !== '') this.restore()
  }

  /** @returns what is wrong with the key */
  async signIn(key: string): Promise<string | undefined> {
    try {
      await this.api.session('POST', key)
      await this.start()
      return undefined
    } catch (error) {
      const { status, message, detail } = Problem.of(error)
      if (status === 401) return 'This key is unknown, expired or revoked.'
      return status === 403
        ? 'This key may only send entries: it lacks the scope “read”.'
        : `${message}. ${detail}`
    }
  }

  async signOut(): Promise<void> {
    await this.api.session('DELETE').catch(() => undefined)
    this.signedOut()
  }

  /** The session has ended here or on the server. */
  signedOut(): void {
    this.results.stop()
    this.project.value = ''
  }
}
