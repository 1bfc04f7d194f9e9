import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { type Entry, fieldOf, textOf } from './entry.ts'
import type { Explorer } from './explorer.ts'
import { DAY_MS, duration, parseTime, presets, type TimeRange, wallTime } from './times.ts'
import { IconButton, shownText, useShared } from './ui.tsx'
import { count, plural } from './visible-text.ts'
import { drawnRows, keysOf, nearsEnd, ROW_HEIGHT, seenIn, topToShow } from './window.ts'

/** More of a message does not fit into a row. */
const ROW_CHARACTERS_MAX = 600
/** A request that takes longer is shown to take long, and can be cancelled. */
const SLOW_MS = 1200
/** What is offered if a range has nothing is this much longer. */
const WIDER = 4
/** Rows whose values determine the widths of the columns. */
const MEASURED_ROWS = 200

const cellClass: Readonly<Record<string, string>> = { timestamp: 'time', level: 'level', message: 'message' }
const hasDate = ({ fromMs, untilMs }: TimeRange, context: string): boolean =>
  untilMs - fromMs > DAY_MS || context !== ''

/** The fields of a row's cells. */
export const cellFields = (explorer: Explorer): string[] => [
  'timestamp',
  'level',
  ...explorer.view.value.columns,
  'message',
]

interface RowProps {
  readonly entry: Entry
  readonly index: number
  readonly activeCell: number
  readonly selected: boolean
}
function Row({ entry, index, activeCell, selected }: RowProps) {
  const { explorer, results } = useShared()
  const { zone, context } = explorer.view.value
  const { date, time, fraction } = wallTime(entry.timestamp, zone)
  const contentOf = (field: string): ComponentChildren => {
    if (field === 'timestamp')
      return (
        <>
          {hasDate(results.range.value, context) ? `${date.slice(5)} ${time}` : time}
          <span class="fraction">{`.${fraction.slice(0, 3)}`}</span>
        </>
      )
    const value = fieldOf(entry, field)
    const text = value === undefined ? '–' : textOf(value).slice(0, ROW_CHARACTERS_MAX)
    return shownText(text, field === 'message' ? results.marks.value : undefined)
  }
  return (
    <div
      id={`row-${index}`}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={selected}
      class={`row level-${entry.level} ${selected ? 'selected' : ''} ${activeCell >= 0 ? 'cursor' : ''} ${entry.id === context ? 'origin' : ''}`}
      data-index={index}
    >
      {cellFields(explorer).map((field, at) => (
        <span
          role="gridcell"
          class={`cell ${cellClass[field] ?? 'value'} ${activeCell === at ? 'active' : ''}`}
        >
          {contentOf(field)}
        </span>
      ))}
    </div>
  )
}

function Waiting() {
  const { results } = useShared()
  const waited = useSignal(0)
  useEffect(() => {
    const startedMs = performance.now()
    const timer = setInterval(() => (waited.value = performance.now() - startedMs), 100)
    return () => clearInterval(timer)
  }, [])
  const isEmpty = results.listed.value.entries.length === 0
  return (
    <>
      <div class="progress" />
      {isEmpty && (
        <div class="skeleton" aria-hidden="true">
          {Array.from({ length: 14 }, (_, row) => (
            <div key={row} style={{ width: `${58 + ((row * 17) % 38)}%` }} />
          ))}
        </div>
      )}
      {waited.value > SLOW_MS && (
        <div class="slow" role="status">
          Still reading: {duration(waited.value)}
          <button type="button" class="btn" onClick={() => results.cancel()}>
            Cancel
          </button>
        </div>
      )}
    </>
  )
}

const Action = ({ run, label }: { run: () => void; label: string }) => (
  <button type="button" class="btn" onClick={run}>
    {label}
  </button>
)

/** What stands in the place of the rows, if there are none. */
function NoRows() {
  const { explorer, results } = useShared()
  const { problem } = results.listed.value
  const { query, live } = explorer.view.value
  if (problem !== undefined) {
    const isQuery = problem.code === 'invalid_query'
    return (
      <div class="blank" role="alert">
        <h2>{problem.message}</h2>
        <p>{problem.detail}</p>
        <div class="actions">
          {problem.code === 'query_too_expensive' && (
            <Action label="Search the last hour" run={() => explorer.show({ from: '-1h', until: 'now' })} />
          )}
          <Action
            label={isQuery ? 'Edit the query' : 'Try again'}
            run={() => (isQuery ? document.querySelector<HTMLElement>('#query')?.focus() : explorer.run())}
          />
        </div>
      </div>
    )
  }
  const { fromMs, untilMs } = results.range.value
  const wider = presets.find(([start]) => -(parseTime(start, 0, 'UTC') ?? 0) > WIDER * (untilMs - fromMs))
  const [title, text] = live
    ? ['Waiting for entries', 'They appear here a second after they were accepted.']
    : query === ''
      ? [
          'No entries in this time range',
          'Entries are sent with POST /v1/logs and a key with the scope “ingest”.',
        ]
      : ['Nothing matches in this time range', 'Widen the time range, or remove a part of the query.']
  return (
    <div class="blank">
      <h2>{title}</h2>
      <p>{text}</p>
      <div class="actions">
        {wider !== undefined && !live && (
          <Action label={wider[1]} run={() => explorer.show({ from: wider[0], until: 'now' })} />
        )}
        {query !== '' && <Action label="Clear the query" run={() => explorer.search('')} />}
      </div>
    </div>
  )
}

function TailBar() {
  const { results } = useShared()
  const { paused, waiting, skipped, dropped, problem } = results.tail.value
  return (
    <div class={`strip tail ${paused ? 'paused' : ''}`} role="status">
      {problem !== undefined ? (
        <span class="warning">
          {problem.isFinal ? 'Stopped' : 'Reconnecting'}: {problem.message.toLowerCase()}
        </span>
      ) : paused ? (
        <span>
          Paused
          {waiting.length > 0 && (
            <>
              : <b>{plural(waiting.length, 'new entry', 'new entries')}</b>
            </>
          )}
        </span>
      ) : (
        <span class="following">Following</span>
      )}
      {skipped > 0 && <span class="warning">{count(skipped)} not shown: more than 1,000 a second</span>}
      {dropped > 0 && <span class="warning">{count(dropped)} not kept during the pause</span>}
      <span class="grow" />
      <IconButton
        icon={paused ? 'play' : 'pause'}
        label={paused ? 'Continue (Space)' : 'Pause (Space)'}
        onClick={() => results.pauseTail(!paused)}
      >
        {paused ? 'Continue' : 'Pause'}
      </IconButton>
    </div>
  )
}

function ContextBar() {
  const { explorer } = useShared()
  const { sameService } = explorer.view.value
  return (
    <div class="strip" role="status">
      <span>The entries around one, whatever the query</span>
      <label class="check">
        <input
          type="checkbox"
          checked={sameService}
          onChange={() => explorer.show({ sameService: !sameService })}
        />
        same service
      </label>
      <span class="grow" />
      <IconButton
        icon="close"
        label="Back to the results (Esc)"
        onClick={() => explorer.show({ context: '' })}
      >
        Back to the results
      </IconButton>
    </div>
  )
}

/** Columns are as wide as the values of the first rows. */
function templateOf(entries: readonly Entry[], columns: readonly string[], timeWidth: string): string {
  const widths = columns.map((field) => {
    const lengths = entries.slice(0, MEASURED_ROWS).map((entry) => textOf(fieldOf(entry, field) ?? '').length)
    return `${Math.min(26, Math.max(6, field.length + 1, ...lengths))}ch`
  })
  return [timeWidth, '7ch', ...widths, 'minmax(12ch, 1fr)'].join(' ')
}

export function EntryList() {
  const { explorer, results, cell } = useShared()
  const scroller = useRef<HTMLDivElement>(null)
  const keys = useRef<ReadonlyMap<string, number>>(new Map())
  const scroll = useSignal({ top: 0, height: 600, topBefore: 0 })
  const { entries, loading, problem, next } = results.listed.value
  const { columns, selected, context, live } = explorer.view.value
  const cursor = results.cursor.value
  const timeWidth = hasDate(results.range.value, context) ? '19ch' : '13ch'
  const template = useMemo(
    () => templateOf(entries, columns, timeWidth),
    [entries, columns, timeWidth, entries.length > 0],
  )
  const place = { ...scroll.value, count: entries.length }

  useEffect(() => {
    const element = scroller.current
    if (element === null) return undefined
    const observer = new ResizeObserver(() => {
      scroll.value = { ...seenIn(element), topBefore: element.scrollTop }
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    // Not those of this drawing: others may have come since.
    const { length } = results.listed.peek().entries
    if (nearsEnd({ ...scroll.peek(), count: length })) void results.loadMore()
    // One that a limit has cut may be empty. One that failed is asked for again when the list is scrolled.
  }, [entries, next, scroll.value])
  // The cursor's row stays visible.
  useLayoutEffect(() => {
    const element = scroller.current
    if (element !== null && cursor > 0) element.scrollTop = topToShow(seenIn(element), cursor)
  }, [cursor])
  // A new answer begins at its top, the neighbours of an entry in the middle.
  useLayoutEffect(() => {
    const origin = context === '' ? -1 : entries.findIndex(({ id }) => id === context)
    if (origin >= 0) results.cursor.value = origin
    const rowsAbove = origin < 0 ? 0 : Math.floor(scroll.value.height / ROW_HEIGHT / 2)
    if (scroller.current !== null && !live)
      scroller.current.scrollTop = (results.cursor.value - rowsAbove) * ROW_HEIGHT
  }, [entries])

  const onScroll = (): void => {
    const element = scroller.current
    if (element === null) return
    scroll.value = { ...seenIn(element), topBefore: scroll.value.top }
    results.isAtTop.value = element.scrollTop <= ROW_HEIGHT
    // A person who scrolls down reads: nothing may move.
    if (!results.isAtTop.value) results.pauseTail(true)
  }
  const move = (to: number): void => {
    const index = Math.max(0, Math.min(entries.length - 1, to))
    results.pauseTail(true)
    results.cursor.value = index
    if (index === 0 && scroller.current !== null) scroller.current.scrollTop = 0
    if (selected !== '' && entries[index] !== undefined) explorer.show({ selected: entries[index].id })
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor(scroll.value.height / ROW_HEIGHT) - 1)
    const to = {
      ArrowDown: cursor + 1,
      j: cursor + 1,
      ArrowUp: cursor - 1,
      k: cursor - 1,
      PageDown: cursor + page,
      PageUp: cursor - page,
      Home: 0,
      End: entries.length - 1,
    }[event.key]
    const cells = cellFields(explorer)
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (to !== undefined) move(to)
    else if (event.key === 'ArrowRight') cell.value = Math.min(cells.length - 1, cell.value + 1)
    else if (event.key === 'ArrowLeft') cell.value = Math.max(0, cell.value - 1)
    else return
    event.preventDefault()
  }
  const onClick = (event: MouseEvent): void => {
    const row = (event.target as HTMLElement).closest<HTMLElement>('[data-index]')
    // Text is selected to be copied.
    if (row === null || String(getSelection()) !== '') return
    const index = Number(row.dataset['index'])
    results.cursor.value = index
    results.pauseTail(true)
    const id = entries[index]?.id ?? ''
    explorer.show({ selected: id === selected ? '' : id })
  }

  const { first, end } = drawnRows(place, scroll.value.topBefore)
  const drawn = entries.slice(first, end)
  keys.current = keysOf(
    drawn.map(({ id }) => id),
    keys.current,
  )
  const isStale = loading && entries.length > 0 && next === undefined && !live
  return (
    <section class="list" aria-label="Entries">
      {live && <TailBar />}
      {context !== '' && <ContextBar />}
      <div
        id="entries"
        class={`grid mono ${isStale ? 'stale' : ''}`}
        role="grid"
        aria-label="Entries, newest first"
        aria-rowcount={entries.length + 1}
        aria-busy={loading}
        aria-activedescendant={cursor >= first && cursor < end ? `row-${cursor}` : undefined}
        tabIndex={0}
        ref={scroller}
        style={{ '--template': template }}
        onScroll={onScroll}
        onKeyDown={onKeyDown}
        onClick={onClick}
      >
        <div role="row" aria-rowindex={1} class="row head">
          {cellFields(explorer).map((field) => (
            <span role="columnheader" class="cell" key={field} title={field}>
              {field === 'timestamp' ? 'time' : field}
            </span>
          ))}
        </div>
        <div
          class="rows"
          role="rowgroup"
          style={{ height: `${entries.length * ROW_HEIGHT}px`, paddingTop: `${first * ROW_HEIGHT}px` }}
        >
          {drawn.map((entry, at) => (
            <Row
              key={keys.current.get(entry.id)}
              entry={entry}
              index={first + at}
              activeCell={first + at === cursor ? Math.min(cell.value, columns.length + 2) : -1}
              selected={entry.id === selected}
            />
          ))}
        </div>
      </div>
      {loading && <Waiting />}
      {entries.length === 0 && !(loading && problem === undefined) && <NoRows />}
    </section>
  )
}
