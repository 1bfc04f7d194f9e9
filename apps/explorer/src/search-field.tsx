import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Counts } from './api.ts'
import { parseQuery, type QueryError } from '@sluice/query-language'
import { completionAt, quoted, tokensOf } from './query-text.ts'
import { EntryText, Icon, IconButton, useShared } from './ui.tsx'
import { count } from './visible-text.ts'

interface Suggestion {
  readonly text: string
  readonly note: string
  /** What the text of the query becomes, and where the caret goes. */
  readonly query: string
  readonly caret: number
  /** The whole query is complete: accepting it searches. */
  readonly searches?: boolean
}

const SUGGESTIONS_MAX = 9
/** A person who types on does not need the values of what is half typed, nor its errors. */
const PAUSE_MS = 250

const examples: readonly (readonly [text: string, note: string])[] = [
  ['level:error', 'a field equals a value'],
  ['"connection refused"', 'the message contains it'],
  ['http.status:>=500', 'numbers compare'],
  ['service:api-* -level:debug', 'begins with; without'],
]
const columns = ['level', 'service', 'environment', 'source', 'message', 'url', 'pathname', 'stack', 'id']

const whole = (text: string, note: string): Suggestion => ({
  text,
  note,
  query: text,
  caret: text.length,
  searches: true,
})

/** The text in its colours, under the input, whose own text is transparent. */
function Coloured({ text, errors }: { text: string; errors: readonly QueryError[] }) {
  const parts = []
  let at = 0
  for (const { kind, from, end } of tokensOf(text)) {
    if (from > at) parts.push(text.slice(at, from))
    const isWrong = errors.some(({ position }) => position >= from && position < end)
    parts.push(<span class={`token-${kind} ${isWrong ? 'wrong' : ''}`}>{text.slice(from, end)}</span>)
    at = end
  }
  const isWrongAtEnd = errors.some(({ position }) => position >= text.length)
  return (
    <>
      {parts}
      {text.slice(at)}
      {isWrongAtEnd && <span class="wrong">&nbsp;&nbsp;</span>}
    </>
  )
}

export function SearchField() {
  const { explorer, results, panel } = useShared()
  const input = useRef<HTMLInputElement>(null)
  const suggestions = useSignal<readonly Suggestion[]>([])
  const active = useSignal(-1)
  const liveErrors = useSignal<readonly QueryError[]>([])
  const asked = useRef(new AbortController())
  /** The values of a field, which are filtered while a person types. */
  const values = useRef<{ readonly key: string; readonly values: Counts['values'] }>(undefined)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const draft = explorer.draft.value
  const isEdited = draft !== explorer.view.value.query
  const errors = isEdited ? liveErrors.value : results.errors.value
  const scrollLeft = useSignal(0)

  const close = (): void => {
    asked.current.abort()
    clearTimeout(timer.current)
    suggestions.value = []
    active.value = -1
  }
  useEffect(() => close, [])

  const offer = (list: readonly Suggestion[]): void => {
    suggestions.value = list.slice(0, SUGGESTIONS_MAX)
    active.value = -1
  }

  function suggestWhole(): void {
    const saved = explorer.saved.value.map((text) => whole(text, 'saved'))
    const recent = explorer.recent.value
      .filter((text) => !explorer.saved.value.includes(text))
      .map((text) => whole(text, 'recent'))
    offer([
      ...[...saved, ...recent].slice(0, SUGGESTIONS_MAX - examples.length),
      ...examples.map(([text, note]) => whole(text, note)),
    ])
  }

  function suggest(): void {
    const element = input.current
    asked.current.abort()
    clearTimeout(timer.current)
    if (element === null) return
    const text = element.value
    const place = completionAt(text, element.selectionStart ?? text.length)
    if (text.trim() === '') return suggestWhole()
    if (place === undefined) return offer([])
    const { field, prefix, from, end } = place
    const complete = (inserted: string, shown: string, note: string): Suggestion => ({
      text: shown,
      note,
      query: text.slice(0, from) + inserted + text.slice(end),
      caret: from + inserted.length,
    })
    const contains = (name: string): boolean => name.toLowerCase().includes(prefix.toLowerCase())
    const begins = (name: string): number => (name.toLowerCase().startsWith(prefix.toLowerCase()) ? 0 : 1)
    if (field === '') {
      const known = results.fields.value.answer?.fields ?? []
      const counts = new Map<string, number>([
        ...columns.map((name) => [name, 0] as const),
        ...known.map((one) => [one.name, one.count] as const),
      ])
      const names = [...counts.keys()].filter((name) => prefix !== '' && contains(name))
      names.sort((a, b) => begins(a) - begins(b) || (counts.get(b) ?? 0) - (counts.get(a) ?? 0))
      return offer(
        names.map((name) =>
          complete(`${name}:`, name, (counts.get(name) ?? 0) > 0 ? count(counts.get(name) ?? 0) : 'field'),
        ),
      )
    }
    const start = text.slice(0, from).lastIndexOf(field)
    const rest = `${text.slice(0, start).replace(/-$/, '')} ${text.slice(end)}`.trim()
    const offerValues = (found: Counts['values']): void => {
      const matching = found.filter(({ value }) => contains(value))
      matching.sort((a, b) => begins(a.value) - begins(b.value))
      offer(matching.map(({ value, count: times }) => complete(`${quoted(value)} `, value, count(times))))
    }
    const key = JSON.stringify([field, rest, results.range.value])
    if (values.current?.key === key) return offerValues(values.current.values)
    offer([])
    const work = new AbortController()
    asked.current = work
    timer.current = setTimeout(() => {
      // Without values, a person types them.
      const found = results.suggest(field, rest, work.signal).catch(() => [])
      void found.then((list) => {
        values.current = { key, values: list }
        return work.signal.aborted || document.activeElement !== element || offerValues(list)
      })
    }, PAUSE_MS)
    return undefined
  }

  const onInput = (): void => {
    explorer.draft.value = input.current?.value ?? ''
    suggest()
    const text = explorer.draft.value
    liveErrors.value = []
    setTimeout(() => {
      if (explorer.draft.value !== text) return
      const parsed = parseQuery(text)
      liveErrors.value = 'errors' in parsed ? parsed.errors : []
    }, PAUSE_MS)
  }

  const accept = ({ query, caret, searches }: Suggestion): void => {
    explorer.draft.value = query
    close()
    if (searches === true) return explorer.search(query)
    // The input has the text after the next drawing.
    setTimeout(() => {
      input.current?.focus()
      input.current?.setSelectionRange(caret, caret)
      suggest()
    })
    return undefined
  }

  const onKeyDown = (event: KeyboardEvent): void => {
    const list = suggestions.value
    const chosen = list[active.value]
    if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && list.length > 0) {
      const step = event.key === 'ArrowDown' ? 1 : -1
      active.value = ((active.value + 1 + step + list.length + 1) % (list.length + 1)) - 1
    } else if (event.key === 'ArrowDown') suggest()
    else if (event.key === 'Tab' && !event.shiftKey && list[0] !== undefined && draft !== '')
      accept(chosen ?? list[0])
    else if (event.key === 'Enter' && chosen !== undefined) accept(chosen)
    else if (event.key === 'Enter') {
      close()
      explorer.search(input.current?.value ?? '')
    } else if (event.key === 'Escape') {
      if (list.length > 0) close()
      else document.querySelector<HTMLElement>('#entries')?.focus()
      event.stopPropagation()
    } else return
    event.preventDefault()
  }

  const isSaved = explorer.saved.value.includes(draft.trim())
  const [first] = errors
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        close()
        explorer.search(draft)
      }}
    >
      <div class={`field mono ${first === undefined ? '' : 'has-error'}`}>
        <Icon name="search" />
        <div class="field-text">
          <div class="coloured" aria-hidden="true">
            <span class="coloured-text" style={{ transform: `translateX(${-scrollLeft.value}px)` }}>
              <Coloured text={draft} errors={errors} />
            </span>
          </div>
          <input
            id="query"
            ref={input}
            value={draft}
            placeholder="Search: timeout, level:error, service:web, http.status:>=500"
            role="combobox"
            aria-label="Search"
            aria-autocomplete="list"
            aria-expanded={suggestions.value.length > 0}
            aria-controls="suggestions"
            aria-activedescendant={active.value < 0 ? undefined : `suggestion-${active.value}`}
            aria-invalid={first !== undefined}
            aria-describedby="query-error"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            onInput={onInput}
            onKeyDown={onKeyDown}
            onFocus={() => draft === '' && suggest()}
            onClick={suggest}
            onBlur={close}
            onScroll={(event) => (scrollLeft.value = event.currentTarget.scrollLeft)}
          />
          <ul
            id="suggestions"
            class="suggestions"
            role="listbox"
            aria-label="Completions"
            hidden={suggestions.value.length === 0}
          >
            {suggestions.value.map((suggestion, index) => (
              <li
                id={`suggestion-${index}`}
                key={suggestion.text}
                role="option"
                aria-selected={index === active.value}
                onPointerDown={(event) => {
                  event.preventDefault()
                  accept(suggestion)
                }}
              >
                <span>
                  <EntryText text={suggestion.text} oneLine />
                </span>
                <span class="note">{suggestion.note}</span>
              </li>
            ))}
            <li role="presentation" class="suggestions-hint">
              <kbd>↑</kbd> <kbd>↓</kbd> choose <kbd>Tab</kbd> complete <kbd>Enter</kbd> search
            </li>
          </ul>
          <div id="query-error" class="query-error" role="status" hidden={first === undefined}>
            {first !== undefined && (
              <>
                <span
                  class="caret"
                  style={{ marginLeft: `max(0px, calc(${first.position}ch - ${scrollLeft.value}px))` }}
                >
                  ▲
                </span>
                {first.message}
              </>
            )}
          </div>
        </div>
        {draft !== '' && (
          <>
            <IconButton
              icon="close"
              class="bare"
              label="Clear the search"
              onClick={() => {
                explorer.search('')
                input.current?.focus()
              }}
            />
            <IconButton
              icon="star"
              class="bare"
              label="Save this search (s)"
              pressed={isSaved}
              onClick={() => explorer.toggleSaved(draft.trim())}
            />
          </>
        )}
      </div>
      <button type="submit" class="btn primary" onFocus={() => (panel.value = '')}>
        Search
      </button>
    </form>
  )
}
