import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { urlOf } from './api.ts'
import { Chart, Legend } from './chart.tsx'
import { Details } from './details.tsx'
import { EntryList } from './entry-list.tsx'
import { Facets } from './facets.tsx'
import { PipelinePage } from './pipeline-page.tsx'
import { LISTED_ENTRIES_MAX } from './results.ts'
import { SearchField } from './search-field.tsx'
import { nextTheme, pipelineKeys, shortcuts } from './shortcuts.ts'
import { TimeControls } from './time-controls.tsx'
import { duration, wallTime } from './times.ts'
import { writeView } from './view.ts'
import { EntryText, Icon, IconButton, Popover, type Shared, SharedContext, useShared } from './ui.tsx'
import { count, plural } from './visible-text.ts'

/** At once, and again after a sign-out: `autofocus` comes with the next frame, and once for a page. */
const takeFocus = (element: HTMLElement | null): void => element?.focus()

function SignIn() {
  const { explorer } = useShared()
  const key = useSignal('')
  const problem = useSignal('')
  const busy = useSignal(false)
  const submit = async (): Promise<void> => {
    busy.value = true
    problem.value = (await explorer.signIn(key.value.trim())) ?? ''
    busy.value = false
  }
  return (
    <main class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <Logo />
        <label for="key">Read key</label>
        <input
          id="key"
          class="mono"
          type="password"
          autocomplete="current-password"
          ref={takeFocus}
          required
          placeholder="slk_…"
          value={key.value}
          aria-describedby="key-problem"
          onInput={(event) => (key.value = event.currentTarget.value)}
        />
        <p id="key-problem" class="problem" role="alert">
          {problem.value}
        </p>
        <button type="submit" class="btn primary" disabled={busy.value || key.value.trim() === ''}>
          {busy.value ? 'Signing in …' : 'Sign in'}
        </button>
        <p class="hint">
          A key with the scope “read” shows the entries of its project, and one with “admin” the pipeline.{' '}
          <code>sluice open</code> prints a link that signs in without one.
        </p>
      </form>
    </main>
  )
}

const Logo = () => (
  <h1 class="logo">
    <svg viewBox="0 0 20 16" aria-hidden="true">
      <path d="M1 3.5c3-2.5 6 2.5 9 0s6-2.5 9 0M1 8c3-2.5 6 2.5 9 0s6-2.5 9 0M1 12.5c3-2.5 6 2.5 9 0s6-2.5 9 0" />
    </svg>
    Sluice
  </h1>
)

function Columns() {
  const { explorer, results } = useShared()
  const filter = useSignal('')
  const { columns } = explorer.view.value
  const known = (results.fields.value.answer?.fields ?? []).map(({ name }) => name)
  const fixed = new Set(['timestamp', 'level', 'message'])
  const names = [...columns, ...known.filter((name) => !columns.includes(name) && !fixed.has(name))].filter(
    (name) => name.toLowerCase().includes(filter.value.toLowerCase()),
  )
  return (
    <Popover name="columns" label="Columns (w)" button={<Icon name="columns" />}>
      <input
        aria-label="Find a field"
        placeholder="Find a field"
        value={filter.value}
        onInput={(event) => (filter.value = event.currentTarget.value)}
      />
      <div class="menu">
        {names.slice(0, 200).map((name) => (
          <label class="check menu-item mono" key={name}>
            <input
              type="checkbox"
              checked={columns.includes(name)}
              onChange={() => explorer.toggleIn('columns', name)}
            />
            <EntryText text={name} oneLine />
          </label>
        ))}
      </div>
    </Popover>
  )
}

function SavedSearches() {
  const { explorer, panel } = useShared()
  const groups = [
    ['Saved', explorer.saved.value],
    ['Recent', explorer.recent.value.filter((text) => !explorer.saved.value.includes(text))],
  ] as const
  return (
    <Popover name="saved" label="Saved and recent searches (v)" button={<Icon name="star" />}>
      <div class="menu">
        {groups.map(([title, texts]) => (
          <section key={title}>
            <h2>{title}</h2>
            {texts.length === 0 && (
              <p class="hint">
                {title === 'Saved' ? 'The star in the search field saves a search.' : 'None yet.'}
              </p>
            )}
            {texts.map((text) => (
              <div class="menu-row" key={text}>
                <button
                  type="button"
                  class="menu-item mono"
                  onClick={() => {
                    panel.value = ''
                    explorer.search(text)
                  }}
                >
                  {text}
                </button>
                {title === 'Saved' && (
                  <IconButton
                    icon="close"
                    class="bare"
                    label={`Remove ${text}`}
                    onClick={() => explorer.toggleSaved(text)}
                  />
                )}
              </div>
            ))}
          </section>
        ))}
      </div>
    </Popover>
  )
}

function Download() {
  const { results, panel } = useShared()
  const total = results.chart.value.answer?.histogram.total
  return (
    <Popover name="export" label="Download (d)" button={<Icon name="download" />}>
      <h2>{total === undefined ? 'All entries' : plural(total, 'entry', 'entries')}, oldest first</h2>
      <div class="menu">
        {(['ndjson', 'csv'] as const).map((format) => (
          <a
            key={format}
            class="menu-item"
            href={urlOf('export', { ...results.parameters, format })}
            download={`logs.${format}`}
            onClick={() => (panel.value = '')}
          >
            {format === 'csv' ? 'CSV, for spreadsheets' : 'NDJSON, exact'}
          </a>
        ))}
      </div>
    </Popover>
  )
}

function Help() {
  const { explorer, panel } = useShared()
  const dialog = useRef<HTMLDialogElement>(null)
  const isShown = (key: string): boolean => explorer.view.value.page === 'entries' || pipelineKeys.has(key)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="help" aria-label="Keys" onClose={() => (panel.value = '')}>
      <IconButton
        icon="close"
        class="bare close"
        label="Close (Esc)"
        onClick={() => dialog.current?.close()}
      />
      <div class="help-groups">
        {Object.entries(shortcuts).map(([title, group]) => (
          <section key={title}>
            <h2>{title}</h2>
            <dl>
              {group
                .filter(({ keys }) => keys.some(isShown))
                .map(({ keys, label }) => (
                  <div key={label}>
                    <dt>
                      {keys.map((key) => (
                        <kbd key={key}>{key}</kbd>
                      ))}
                    </dt>
                    <dd>{label}</dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
      </div>
    </dialog>
  )
}

const pages = [
  ['entries', 'Entries', 'read'],
  ['pipeline', 'Pipeline', 'admin'],
] as const

/** Those that the key may see. Links, which other tabs can open. */
function Pages() {
  const { explorer } = useShared()
  const view = explorer.view.value
  const allowed = pages.filter(([, , scope]) => explorer.can(scope))
  return (
    <nav aria-label="Pages">
      {allowed.map(([page, label]) => (
        <a
          class="btn"
          key={page}
          href={writeView({ ...view, page })}
          title={`${label} (b)`}
          aria-current={view.page === page ? 'page' : undefined}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return
            event.preventDefault()
            explorer.show({ page })
          }}
        >
          {label}
        </a>
      ))}
    </nav>
  )
}

/** What concerns entries. */
function EntryTools() {
  const { explorer } = useShared()
  const { live } = explorer.view.value
  return (
    <>
      <TimeControls />
      <button
        type="button"
        class="btn live"
        aria-pressed={live}
        title="Follow new entries (l)"
        onClick={() => explorer.setLive(!live)}
      >
        <span class="dot" />
        Live
      </button>
      <IconButton icon="refresh" label="Search again (r)" onClick={() => explorer.run()} />
      <div class="group">
        <SavedSearches />
        <Columns />
        <Download />
      </div>
    </>
  )
}

function Header() {
  const { explorer, panel, theme } = useShared()
  return (
    <header>
      <Logo />
      <span class="project" title="Project">
        {explorer.project.value}
      </span>
      <Pages />
      <span class="grow" />
      {explorer.view.value.page === 'entries' && <EntryTools />}
      <div class="group">
        <IconButton
          icon="theme"
          label={`Theme: ${theme.value} (m)`}
          onClick={() => (theme.value = nextTheme(theme.value))}
        />
        <IconButton icon="help" label="Keys (?)" onClick={() => (panel.value = 'help')} />
        <IconButton icon="out" label="Sign out" onClick={() => void explorer.signOut()} />
      </div>
    </header>
  )
}

const limits: Readonly<Record<string, string>> = {
  rows: 'it would have read too many rows',
  bytes: 'the answer would have been too large',
  time: 'it took too long',
}

/** How much there is, and how complete it is. */
function Summary() {
  const { explorer, results } = useShared()
  const { completeUntil, limitedBy, entries, next, tookMs, loading } = results.listed.value
  const { answer, loading: counting } = results.chart.value
  const complete = completeUntil === undefined ? undefined : wallTime(completeUntil, explorer.view.value.zone)
  return (
    <section class="summary" aria-label="Summary">
      <span class={counting ? 'stale' : ''}>
        <b class="total">{answer === undefined ? '–' : count(answer.histogram.total)}</b>{' '}
        {answer?.histogram.total === 1 ? 'entry' : 'entries'}
      </span>
      <Legend />
      <span class="grow" />
      {limitedBy !== undefined && (
        <span class="warning" title="Narrow the time range or the query">
          Not all: {limits[limitedBy] ?? limitedBy}
        </span>
      )}
      {next !== undefined && entries.length >= LISTED_ENTRIES_MAX && (
        <span class="warning">Narrow the time range to see older ones</span>
      )}
      <span class="hint loaded">
        {count(entries.length)} loaded{loading || tookMs === 0 ? '' : ` · ${duration(tookMs)}`}
      </span>
      {complete === undefined ? (
        <span class="hint" title="Entries that were accepted may still be missing">
          {loading ? '' : 'Completeness unknown'}
        </span>
      ) : (
        <span
          class="complete"
          title={`No entry that was received until then becomes visible later (${completeUntil ?? ''})`}
        >
          ✓ complete up to {complete.time}
        </span>
      )}
    </section>
  )
}

const hints: readonly (readonly [key: string, label: string])[] = [
  ['/', 'search'],
  ['↑ ↓', 'move'],
  ['Enter', 'details'],
  ['f', 'filter'],
  ['x', 'exclude'],
  ['c', 'context'],
  ['l', 'live'],
  ['t', 'time'],
  ['?', 'all keys'],
]

function Entries() {
  const { explorer } = useShared()
  const { selected } = explorer.view.value
  return (
    <>
      <SearchField />
      <Summary />
      <Chart />
      <main class={selected === '' ? '' : 'has-details'}>
        <Facets />
        <EntryList />
        {selected !== '' && <Details />}
      </main>
      <footer>
        {hints.map(([key, label]) => (
          <span key={key}>
            <kbd>{key}</kbd> {label}
          </span>
        ))}
      </footer>
    </>
  )
}

function Page() {
  const { explorer, panel } = useShared()
  const { page } = explorer.view.value
  return (
    <div class={`page of-${page}`}>
      <Header />
      {page === 'entries' ? <Entries /> : <PipelinePage />}
      <div class="notice" role="status" hidden={explorer.notice.value === ''}>
        {explorer.notice.value}
      </div>
      {panel.value === 'help' && <Help />}
    </div>
  )
}

function Root() {
  const { explorer } = useShared()
  const project = explorer.project.value
  if (project === undefined)
    return (
      <div class="starting" role="status">
        Loading …
      </div>
    )
  return project === '' ? <SignIn /> : <Page />
}

export const App = ({ shared }: { shared: Shared }) => (
  <SharedContext.Provider value={shared}>
    <Root />
  </SharedContext.Provider>
)
