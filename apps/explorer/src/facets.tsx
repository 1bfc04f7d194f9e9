import { useSignal } from '@preact/signals'
import type { Problem } from './api.ts'
import { hasTerm, termOf } from './query-text.ts'
import { EntryText, Icon, IconButton, moveFocus, useShared } from './ui.tsx'
import { count } from './visible-text.ts'

/** More names than anyone reads: the filter above them finds the others. */
const NAMES_MAX = 100
/** Nearly every entry has a value of its own. */
const uncounted = new Set(['id', 'timestamp', 'received_at'])

const NotCounted = ({ problem }: { problem: Problem | undefined }) =>
  problem && (
    <p class="hint" title={problem.message}>
      Not counted
    </p>
  )

function Facet({ field }: { field: string }) {
  const { explorer, results } = useShared()
  const facet = results.facet(field).value
  const values = facet.answer?.values ?? []
  const most = Math.max(1, ...values.map((value) => value.count))
  const { query } = explorer.view.value
  return (
    <section class={`facet ${facet.loading ? 'loading' : ''}`}>
      <h2>
        <span class="facet-name" title={field}>
          {field}
        </span>
        <IconButton
          icon="columns"
          label={`Column ${field}`}
          class="bare"
          pressed={explorer.view.value.columns.includes(field)}
          onClick={() => explorer.toggleIn('columns', field)}
        />
        <IconButton
          icon="close"
          label={`Close ${field}`}
          class="bare"
          onClick={() => explorer.toggleIn('facets', field)}
        />
      </h2>
      <ul>
        {values.map(({ value, count: times }) => {
          const term = termOf(field, value)
          const isExcluded = hasTerm(query, `-${term}`)
          return (
            <li key={value} class={isExcluded ? 'excluded' : ''}>
              <span
                class={`facet-bar ${field === 'level' ? `level-${value}` : ''}`}
                style={{ width: `${(times / most) * 100}%` }}
              />
              <button
                type="button"
                class="facet-value mono"
                title={`${value}\nFilter (Enter), exclude (x)`}
                aria-pressed={hasTerm(query, term)}
                onClick={() => explorer.toggleFilter(field, value, false)}
                onKeyDown={(event) => {
                  if (event.key !== 'x') return
                  event.stopPropagation()
                  explorer.toggleFilter(field, value, true)
                }}
              >
                <EntryText text={value} oneLine />
                <span class="number">{count(times)}</span>
              </button>
              <IconButton
                icon="minus"
                label={`Exclude ${field} ${value}`}
                class="bare exclude"
                pressed={isExcluded}
                onClick={() => explorer.toggleFilter(field, value, true)}
              />
            </li>
          )
        })}
      </ul>
      <NotCounted problem={facet.problem} />
      {facet.answer !== undefined && values.length === 0 && <p class="hint">No entry has it</p>}
    </section>
  )
}

export function Facets() {
  const { explorer, results } = useShared()
  const filter = useSignal('')
  const { facets } = explorer.view.value
  const { answer, problem } = results.fields.value
  const names = (answer?.fields ?? []).filter(
    ({ name }) =>
      !facets.includes(name) &&
      !uncounted.has(name) &&
      name.toLowerCase().includes(filter.value.trim().toLowerCase()),
  )
  return (
    <aside
      class="facets"
      aria-label="Fields and values"
      tabIndex={-1}
      onKeyDown={(event) => moveFocus(event, event.currentTarget)}
    >
      {facets.map((field) => (
        <Facet key={field} field={field} />
      ))}
      <section class="facet">
        <h2>
          <span class="facet-name">More fields</span>
          <span class="number">{answer === undefined ? '' : count(names.length)}</span>
        </h2>
        <input
          class="facet-filter"
          aria-label="Find a field"
          placeholder="Find a field"
          value={filter.value}
          onInput={(event) => (filter.value = event.currentTarget.value)}
        />
        <ul>
          {names.slice(0, NAMES_MAX).map(({ name, count: times }) => (
            <li key={name}>
              <button
                type="button"
                class="facet-value mono"
                title={`${name}: count its values`}
                onClick={() => explorer.toggleIn('facets', name)}
              >
                <Icon name="right" />
                <EntryText text={name} oneLine />
                <span class="number">{count(times)}</span>
              </button>
            </li>
          ))}
        </ul>
        {names.length > NAMES_MAX && <p class="hint">and {count(names.length - NAMES_MAX)} more</p>}
        {answer?.sampled !== undefined && <p class="hint">Counted in {count(answer.sampled)} entries</p>}
        <NotCounted problem={problem} />
      </section>
    </aside>
  )
}
