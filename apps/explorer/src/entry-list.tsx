import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { type Entry, fieldOf, textOf } from './entry.ts'
import type { Explorer } from './explorer.ts'
import { DAY_MS, duration, presets, wallTime } from './times.ts'
import { IconButton, shownText, useShared } from './ui.tsx'
import { count, plural } from './visible-text.ts'
import { drawnRows, keysOf, nearsEnd, ROW_HEIGHT, topToShow } from './window.ts'

/** More of a message does not fit into a row. */
const ROW_CHARACTERS_MAX = 600
/** A request that takes longer is shown to take long, and can be cancelled. */
const SLOW_MS = 1200
/** Rows whose values determine the widths of the columns. */
const MEASURED_ROWS = 200

/** The fields of a row's cells. */
export const cellFields = (explorer: Explorer): string[] => [
  'timestamp',
  'level',
  ...explorer.view.value.columns,
  'message',
]

function Row({
  entry,
  index,
  active,
  selected,
}: {
  entry: Entry
  index: number
  active: number
  selected: boolean
}) {
  const { explorer, results } = useShared()
  const { columns, zone, context } = explorer.view.value
  const { fromMs, untilMs } = results.range.value
  const { date, time, fraction } = wallTime(entry.timestamp, zone)
  const marks = results.marks.value
  const cell = (at: number, content: preact.ComponentChildren, name: string) => (
    <span role="gridcell" class={`cell ${name} ${active === at ? 'active' : ''}`}>
      {content}
    </span>
  )
  return (
    <div
      id={`row-${index}`}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={selected}
      class={`row level-${entry.level} ${selected ? 'selected' : ''} ${active >= 0 ? 'cursor' : ''} ${entry.id === context ? 'origin' : ''}`}
      data-index={index}
    >
      {cell(
        0,
        <>
          {untilMs - fromMs > DAY_MS || context !== '' ? `${date.slice(5)} ${time}` : time}
          <span class="fraction">{`.${fraction.slice(0, 3)}`}</span>
        </>,
        'time',
      )}
      {cell(1, shownText(entry.level), 'level')}
      {columns.map((field, at) => {
        const value = fieldOf(entry, field)
        return cell(
          at + 2,
          value === undefined ? (
            <span class="absent">–</span>
          ) : (
            shownText(textOf(value).slice(0, ROW_CHARACTERS_MAX))
          ),
          'value',
        )
      })}
      {cell(columns.length + 2, shownText(entry.message.slice(0, ROW_CHARACTERS_MAX), marks), 'message')}
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
            <div key={row} style={{ width: `${58 + ((row * 37) % 38)}%` }} />
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

/** What stands in the place of the rows, if there are none. */
function NoRows() {
  const { explorer, results } = useShared()
  const { problem } = results.listed.value
  const { query, from, live } = explorer.view.value
  if (problem !== undefined) {
    const isQuery = problem.code === 'invalid_query'
    return (
      <div class="blank" role="alert">
        <h2>{problem.message}</h2>
        <p>{problem.detail}</p>
        <div class="actions">
          {problem.code === 'query_too_expensive' && (
            <button type="button" class="btn" onClick={() => explorer.show({ from: '-1h', until: 'now' })}>
              Search the last hour
            </button>
          )}
          {isQuery ? (
            <button
              type="button"
              class="btn"
              onClick={() => document.querySelector<HTMLElement>('#query')?.focus()}
            >
              Edit the query
            </button>
          ) : (
            <button type="button" class="btn" onClick={() => explorer.run()}>
              Try again
            </button>
          )}
        </div>
      </div>
    )
  }
  const wider = presets[presets.findIndex(([start]) => start === from) + 2] ?? presets[4]
  return (
    <div class="blank">
      <h2>
        {live
          ? 'Waiting for entries'
          : query === ''
            ? 'No entries in this time range'
            : 'Nothing matches in this time range'}
      </h2>
      <p>
        {live
          ? 'They appear here a second after they were accepted.'
          : query === ''
            ? 'Entries are sent with POST /v1/logs and a key with the scope “ingest”.'
            : 'Widen the time range, or remove a part of the query.'}
      </p>
      <div class="actions">
        {wider !== undefined && !live && (
          <button type="button" class="btn" onClick={() => explorer.show({ from: wider[0], until: 'now' })}>
            {wider[1]}
          </button>
        )}
        {query !== '' && (
          <button type="button" class="btn" onClick={() => explorer.search('')}>
            Clear the query
          </button>
        )}
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
function templateOf(entries: readonly Entry[], columns: readonly string[], hasDate: boolean): string {
  const widths = columns.map((field) => {
    const lengths = entries.slice(0, MEASURED_ROWS).map((entry) => textOf(fieldOf(entry, field) ?? '').length)
    return `${Math.min(26, Math.max(6, field.length + 1, ...lengths))}ch`
  })
  return [hasDate ? '19ch' : '13ch', '7ch', ...widths, 'minmax(12ch, 1fr)'].join(' ')
}

export function EntryList() {
  const { explorer, results, cell } = useShared()
  const scroller = useRef<HTMLDivElement>(null)
  const keys = useRef<ReadonlyMap<string, number>>(new Map())
  const scroll = useSignal({ top: 0, height: 600, topBefore: 0 })
  const { entries, loading, problem, next } = results.listed.value
  const { columns, selected, context, live } = explorer.view.value
  const cursor = results.cursor.value
  const range = results.range.value
  const hasDate = range.untilMs - range.fromMs > DAY_MS || context !== ''
  const template = useMemo(
    () => templateOf(entries, columns, hasDate),
    [entries, columns, hasDate, entries.length > 0],
  )
  const place = { ...scroll.value, count: entries.length }

  useEffect(() => {
    const element = scroller.current
    if (element === null) return undefined
    const observer = new ResizeObserver(() => {
      const { scrollTop: top, clientHeight: height } = element
      scroll.value = { top, height, topBefore: top }
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    if (nearsEnd(place)) void results.loadMore()
  }, [entries, entries.length, scroll.value])
  // The cursor's row stays visible.
  useLayoutEffect(() => {
    const element = scroller.current
    if (element !== null && cursor > 0)
      element.scrollTop = topToShow({ ...place, top: element.scrollTop }, cursor)
  }, [cursor])
  // A new answer begins at its top, the neighbours of an entry in the middle.
  useLayoutEffect(() => {
    const origin = context === '' ? -1 : entries.findIndex(({ id }) => id === context)
    if (origin >= 0) results.cursor.value = origin
    if (scroller.current !== null && !live)
      scroller.current.scrollTop =
        origin < 0 ? results.cursor.value * ROW_HEIGHT : origin * ROW_HEIGHT - scroll.value.height / 2
  }, [entries])

  const onScroll = (): void => {
    const element = scroller.current
    if (element === null) return
    const { scrollTop: top, clientHeight: height } = element
    scroll.value = { top, height, topBefore: scroll.value.top }
    results.isAtTop.value = element.scrollTop < ROW_HEIGHT
    // A person who scrolls down reads: nothing may move.
    if (live && element.scrollTop > ROW_HEIGHT) results.pauseTail(true)
  }
  const move = (to: number): void => {
    const index = Math.max(0, Math.min(entries.length - 1, to))
    if (live) results.pauseTail(true)
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
    if (live) results.pauseTail(true)
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
              active={first + at === cursor ? Math.min(cell.value, columns.length + 2) : -1}
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
