import { useSignal } from '@preact/signals'
import {
  isoOf,
  isRelative,
  isZone,
  browserZone,
  offsetLabel,
  parseRange,
  presets,
  rangeEnds,
  rangeLabel,
} from './times.ts'
import { Icon, IconButton, Popover, useShared } from './ui.tsx'

const refreshChoices: readonly (readonly [seconds: number, label: string])[] = [
  [0, 'Off'],
  [5, 'Every 5 s'],
  [10, 'Every 10 s'],
  [30, 'Every 30 s'],
  [60, 'Every minute'],
  [300, 'Every 5 minutes'],
]

/** As it is in the URL: absolute times in UTC. */
const exact = (text: string, ms: number): string => (isRelative(text.trim()) ? text.trim() : isoOf(ms))

/** An absolute range as a person would type it. */
const typed = (text: string): string =>
  isRelative(text) ? text : text.replace('T', ' ').replace(/(\.000)?Z$/, 'Z')

function RangeForm() {
  const { explorer, panel } = useShared()
  const { from, until, zone } = explorer.view.value
  const start = useSignal(typed(from))
  const end = useSignal(typed(until))
  const problem = useSignal('')
  const apply = (event: Event): void => {
    event.preventDefault()
    const range = parseRange(start.value, end.value, explorer.api.nowMs(), zone)
    if (typeof range === 'string') {
      problem.value = range
      return
    }
    panel.value = ''
    explorer.show({
      from: exact(start.value, range.fromMs),
      until: exact(end.value, range.untilMs),
      live: false,
      context: '',
    })
  }
  return (
    <form class="range-form" onSubmit={apply}>
      <h2>Custom range</h2>
      <label>
        From
        <input
          class="mono"
          value={start.value}
          onInput={(event) => (start.value = event.currentTarget.value)}
          spellcheck={false}
        />
      </label>
      <label>
        Until
        <input
          class="mono"
          value={end.value}
          onInput={(event) => (end.value = event.currentTarget.value)}
          spellcheck={false}
        />
      </label>
      <p class="hint" role="status">
        {problem.value === ''
          ? '-90m, 14:30, or 2026-11-24 14:30. Without an offset, in the zone below.'
          : problem.value}
      </p>
      <button class="btn primary" type="submit">
        Apply
      </button>
    </form>
  )
}

function ZoneChoice() {
  const { explorer } = useShared()
  const { zone } = explorer.view.value
  const zones = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((name) => name !== 'UTC')]
  return (
    <label>
      Time zone
      <select value={zone} onChange={(event) => explorer.show({ zone: event.currentTarget.value })}>
        <option value="">Browser: {browserZone()}</option>
        {zones.map((name) => (
          <option value={name}>{name}</option>
        ))}
        {zone !== '' && !zones.includes(zone) && (
          <option value={zone}>{isZone(zone) ? zone : `${zone} (unknown)`}</option>
        )}
      </select>
    </label>
  )
}

export function TimeControls() {
  const { explorer, results, panel } = useShared()
  const { from, until, zone, refreshSeconds, live } = explorer.view.value
  const range = results.range.value
  const label = rangeLabel(from, until, range, zone)
  const ends = rangeEnds(range, zone)
  return (
    <div class="group">
      <IconButton icon="left" label="Earlier ([)" onClick={() => explorer.shiftRange(-1)} />
      <Popover
        name="time"
        label="Time range (t)"
        buttonClass="btn time"
        button={
          <>
            <Icon name="clock" />
            <b>{label}</b>
            {label !== ends && <span class="ends">{ends}</span>}
            <span>{offsetLabel(range.untilMs, zone)}</span>
            {refreshSeconds > 0 && !live && <span>↻ {refreshSeconds} s</span>}
          </>
        }
      >
        <div class="time-panel">
          <div>
            {presets.map(([start, name]) => (
              <button
                type="button"
                key={start}
                class="menu-item"
                data-focus={start === from ? true : undefined}
                aria-pressed={start === from && until === 'now'}
                onClick={() => {
                  panel.value = ''
                  explorer.show({ from: start, until: 'now', context: '' })
                }}
              >
                {name}
              </button>
            ))}
          </div>
          <div class="time-forms">
            <RangeForm key={`${from} ${until}`} />
            <ZoneChoice />
            <label>
              Refresh
              <select
                value={String(refreshSeconds)}
                disabled={live}
                onChange={(event) => explorer.show({ refreshSeconds: Number(event.currentTarget.value) })}
              >
                {refreshChoices.map(([seconds, name]) => (
                  <option value={String(seconds)}>{name}</option>
                ))}
              </select>
            </label>
          </div>
        </div>
      </Popover>
      <IconButton icon="right" label="Later (])" onClick={() => explorer.shiftRange(1)} />
      <IconButton icon="zoomOut" label="Zoom out (z)" onClick={() => explorer.zoomOut()} />
    </div>
  )
}
