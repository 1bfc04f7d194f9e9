import { entryActions } from './details.tsx'
import { type Entry, fieldOf, textOf } from './entry.ts'
import { cellFields } from './entry-list.tsx'
import type { PanelName, Shared } from './ui.tsx'

interface Shortcut {
  readonly keys: readonly string[]
  readonly label: string
  /** Absent where a component handles the keys itself. */
  readonly run?: (shared: Shared) => void
}

const focus = (selector: string): void => document.querySelector<HTMLElement>(selector)?.focus()
const atCursor = ({ results }: Shared): Entry | undefined =>
  results.listed.value.entries[results.cursor.value]
const open =
  (name: PanelName) =>
  ({ panel }: Shared): void => {
    panel.value = panel.value === name ? '' : name
  }

function filterByCell(shared: Shared, exclude: boolean): void {
  const { explorer, cell } = shared
  const entry = atCursor(shared)
  const field = cellFields(explorer)[cell.value] ?? 'message'
  const value = entry === undefined ? undefined : fieldOf(entry, field)
  if (value === undefined || field === 'timestamp') explorer.say('← and → choose the value to filter by')
  else explorer.toggleFilter(field, textOf(value), exclude)
}

function back({ explorer, panel }: Shared): void {
  const { selected, context } = explorer.view.value
  if (panel.value !== '') panel.value = ''
  else if (selected !== '') explorer.show({ selected: '' })
  else if (context !== '') explorer.show({ context: '' })
  focus('#entries')
}

function togglePage({ explorer }: Shared): void {
  const page = explorer.view.value.page === 'pipeline' ? 'entries' : 'pipeline'
  if (explorer.can(page === 'pipeline' ? 'admin' : 'read')) explorer.show({ page })
}

/** On the page of the pipeline. */
export const pipelineKeys: ReadonlySet<string> = new Set(['b', 'm', 'u', '?'])

/** The keys of the page, as the help lists them. */
export const shortcuts: Readonly<Record<string, readonly Shortcut[]>> = {
  Search: [
    { keys: ['/'], label: 'Edit the query', run: () => focus('#query') },
    {
      keys: ['s'],
      label: 'Save the search, or remove it',
      run: ({ explorer }) =>
        explorer.view.value.query !== '' && explorer.toggleSaved(explorer.view.value.query),
    },
    { keys: ['v'], label: 'Saved and recent searches', run: open('saved') },
    {
      keys: ['g'],
      label: 'Fields and values: ↑ ↓, Enter filters, x excludes',
      run: () => focus('.facets button.facet-value'),
    },
    { keys: ['r'], label: 'Search again', run: ({ explorer }) => explorer.run() },
  ],
  Time: [
    { keys: ['t'], label: 'Time range, time zone, refresh', run: open('time') },
    { keys: ['['], label: 'Earlier', run: ({ explorer }) => explorer.shiftRange(-1) },
    { keys: [']'], label: 'Later', run: ({ explorer }) => explorer.shiftRange(1) },
    { keys: ['z'], label: 'Zoom out', run: ({ explorer }) => explorer.zoomOut() },
    {
      keys: ['h'],
      label: 'Chart: ← → a bar, with Shift a range, Enter zooms in',
      run: () => focus('#chart'),
    },
    {
      keys: ['u'],
      label: 'UTC or the browser’s time zone',
      run: ({ explorer }) => explorer.show({ zone: explorer.view.value.zone === 'UTC' ? '' : 'UTC' }),
    },
  ],
  Entries: [
    { keys: ['e'], label: 'To the list', run: () => focus('#entries') },
    { keys: ['↑', '↓', 'j', 'k'], label: 'Choose an entry' },
    { keys: ['←', '→'], label: 'Choose a value in it' },
    { keys: ['f'], label: 'Filter by the value', run: (shared) => filterByCell(shared, false) },
    { keys: ['x'], label: 'Exclude the value', run: (shared) => filterByCell(shared, true) },
    {
      keys: ['Enter'],
      label: 'Open or close the details',
      run: (shared) => {
        const { explorer, results } = shared
        const id = atCursor(shared)?.id ?? ''
        results.pauseTail(true)
        explorer.show({ selected: explorer.view.value.selected === id ? '' : id })
      },
    },
    {
      keys: ['i'],
      label: 'Into the details: ↑ ↓, f, x, y',
      run: () => focus('#details .pair[tabindex], #details button'),
    },
    { keys: ['Esc'], label: 'Close what is open', run: back },
  ],
  Entry: entryActions.map(({ key, help, run }) => ({
    keys: [key],
    label: help,
    run: (shared) => {
      const entry = shared.results.detail.value.answer ?? atCursor(shared)
      if (entry !== undefined) run(shared.explorer, entry)
    },
  })),
  Page: [
    { keys: ['l'], label: 'Live', run: ({ explorer }) => explorer.setLive(!explorer.view.value.live) },
    {
      keys: ['Space'],
      label: 'Pause or continue',
      run: ({ results }) => results.pauseTail(!results.tail.value.paused),
    },
    { keys: ['w'], label: 'Columns', run: open('columns') },
    { keys: ['d'], label: 'Download', run: open('export') },
    { keys: ['b'], label: 'Entries or pipeline', run: togglePage },
    { keys: ['m'], label: 'Dark or light', run: ({ theme }) => (theme.value = nextTheme(theme.value)) },
    { keys: ['?'], label: 'This help', run: open('help') },
  ],
}

export const nextTheme = (theme: 'auto' | 'light' | 'dark'): 'auto' | 'light' | 'dark' =>
  ({ auto: 'dark', dark: 'light', light: 'auto' })[theme] as 'auto' | 'light' | 'dark'

const keyNames: Readonly<Record<string, string>> = { Escape: 'Esc', ' ': 'Space' }
const byKey = new Map(
  Object.values(shortcuts).flatMap((group) =>
    group.flatMap((shortcut) => shortcut.keys.map((key) => [key, shortcut] as const)),
  ),
)

/** Handles a key that no component has handled. */
export function onShortcut(event: KeyboardEvent, shared: Shared): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
  const target = event.target as HTMLElement
  const isTyping = target.matches('input:not([type=checkbox], [type=range]), select, textarea')
  const name = keyNames[event.key] ?? event.key
  // A control that has the focus takes these itself.
  const isOwn = target.matches('button, a, summary, input') && (name === 'Enter' || name === 'Space')
  if ((isTyping && name !== 'Esc') || isOwn || (shared.panel.value !== '' && name !== 'Esc' && name !== '?'))
    return
  if (shared.explorer.view.value.page === 'pipeline' && !pipelineKeys.has(name)) return
  const run = byKey.get(name)?.run
  if (run === undefined) return
  event.preventDefault()
  run(shared)
}
