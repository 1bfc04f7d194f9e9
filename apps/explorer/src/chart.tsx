import { useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { barsOf, type Bucket, levelsOf, rangeBetween, ticksOf, timeOf, totalOf, xOf } from './bars.ts'
import { hasTerm, termOf } from './query-text.ts'
import { DAY_MS, duration, type TimeRange, wallTime } from './times.ts'
import { useShared } from './ui.tsx'
import { count, plural } from './visible-text.ts'

const AXIS_HEIGHT = 16
const TICK_GAP = 90
/** A shorter drag is a click. */
const DRAG_PIXELS_MIN = 4

const calmLevels = new Set(['info', 'debug', 'log'])
const TIP_WIDTH = 216 + 12

function sumsOf(buckets: readonly Bucket[]): Bucket['counts'] {
  const sums: Record<string, number> = {}
  for (const { counts } of buckets)
    for (const [level, times] of Object.entries(counts)) sums[level] = (sums[level] ?? 0) + times
  return sums
}

/** The counts by level. Each is a filter. */
export function Legend() {
  const { explorer, results } = useShared()
  const sums = sumsOf(results.chart.value.answer?.histogram.buckets ?? [])
  return (
    <ul class="legend" aria-label="Entries by level">
      {levelsOf(sums).map((level) => (
        <li key={level}>
          <button
            type="button"
            class={`level level-${level}`}
            title={`Only ${level}. With Shift: without it`}
            aria-pressed={hasTerm(explorer.view.value.query, termOf('level', level))}
            onClick={(event) => explorer.toggleFilter('level', level, event.shiftKey)}
          >
            <span class="swatch" />
            {level} <b>{count(sums[level] ?? 0)}</b>
          </button>
        </li>
      ))}
    </ul>
  )
}

/** The number of entries over time, by level. A range is chosen by dragging, or with the arrow keys and Enter. */
export function Chart() {
  const { explorer, results, colours } = useShared()
  const canvas = useRef<HTMLCanvasElement>(null)
  const size = useSignal({ width: 0, height: 0 })
  /** Two times; the second is where the pointer or the keys are. */
  const drag = useSignal<readonly [number, number] | undefined>(undefined)
  const hover = useSignal<number | undefined>(undefined)

  useEffect(() => {
    const element = canvas.current
    if (element === null) return undefined
    const observer = new ResizeObserver(() => {
      size.value = { width: element.clientWidth, height: element.clientHeight }
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])

  const answer = results.chart.value.answer
  const zone = explorer.view.value.zone
  const stepMs = answer?.histogram.step_ms ?? 1000
  const range: TimeRange = answer?.range ?? results.range.value

  useSignalEffect(() => {
    const element = canvas.current
    const context = element?.getContext('2d')
    const { width, height } = size.value
    // A change of the theme changes what the probe finds.
    void colours.value
    const shown = results.chart.value.answer
    if (element === null || context === null || context === undefined || width === 0) return
    const colour = (name: string): string => {
      element.style.color = `var(--${name}, var(--log))`
      return getComputedStyle(element).color
    }
    element.width = Math.round(width * devicePixelRatio)
    element.height = Math.round(height * devicePixelRatio)
    context.scale(devicePixelRatio, devicePixelRatio)
    context.clearRect(0, 0, width, height)
    if (shown === undefined) return
    const plot = { width, height: height - AXIS_HEIGHT }
    const [from, until] = drag.value ?? []
    if (from !== undefined && until !== undefined) {
      const chosen = rangeBetween(from, until, shown.histogram.step_ms, shown.range)
      context.fillStyle = colour('sel')
      const left = xOf(chosen.fromMs, shown.range, width)
      context.fillRect(left, 0, xOf(chosen.untilMs, shown.range, width) - left, plot.height)
    }
    context.fillStyle = colour('line')
    context.fillRect(0, plot.height, width, 1)
    context.fillRect(0, 0, width, 0.5)
    context.font = `10.5px ${getComputedStyle(element).fontFamily}`
    const { step, times } = ticksOf(shown.range, width, explorer.view.value.zone, TICK_GAP)
    for (const at of times) {
      const x = xOf(at, shown.range, width)
      context.fillStyle = colour('line')
      context.fillRect(x, plot.height, 1, 4)
      const { date, time } = wallTime(at, explorer.view.value.zone)
      context.fillStyle = colour('faint')
      const text =
        step >= DAY_MS || time === '00:00:00' ? date.slice(5) : step < 60_000 ? time : time.slice(0, 5)
      if (x + 40 < width) context.fillText(text, x + 4, height - 3)
    }
    const under = hover.value
    const { max, bars } = barsOf(shown.histogram, shown.range, plot)
    for (const { fromMs, x, width: barWidth, parts } of bars) {
      const isUnder = under === undefined || (fromMs <= under && under < fromMs + shown.histogram.step_ms)
      for (const { level, y, height: partHeight } of parts) {
        // What stands out is what needs attention.
        context.globalAlpha = (isUnder ? 1 : 0.7) * (calmLevels.has(level) ? 0.6 : 1)
        context.fillStyle = colour(level)
        // A line of the background separates the levels, also for those who do not see their colours.
        context.fillRect(x, y, barWidth, Math.max(1, partHeight - (partHeight > 3 ? 1 : 0)))
      }
    }
    context.globalAlpha = 1
    const completeMs = Date.parse(results.listed.value.completeUntil ?? '')
    if (completeMs > shown.range.fromMs && completeMs < shown.range.untilMs) {
      context.fillStyle = colour('faint')
      const x = xOf(completeMs, shown.range, width)
      for (let y = 0; y < plot.height; y += 5) context.fillRect(x, y, 1, 2.5)
    }
    context.fillStyle = colour('faint')
    context.fillText(count(max), 2, 11)
  })

  const timeAt = (event: PointerEvent): number => timeOf(event.offsetX, range, size.value.width)
  const zoom = (): void => {
    if (drag.value === undefined) return
    const chosen = rangeBetween(drag.value[0], drag.value[1], stepMs, range)
    drag.value = undefined
    hover.value = undefined
    explorer.setRange(chosen)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key]
    const at = hover.value ?? range.untilMs - stepMs / 2
    if (step !== undefined) {
      const next = Math.min(
        range.untilMs - 1,
        Math.max(range.fromMs, hover.value === undefined ? at : at + step * stepMs),
      )
      hover.value = next
      drag.value = event.shiftKey ? [drag.value?.[0] ?? at, next] : undefined
    } else if (event.key === 'Enter') {
      drag.value ??= [at, at]
      zoom()
    } else if (event.key === 'Escape') {
      drag.value = undefined
      hover.value = undefined
    } else return
    event.preventDefault()
    event.stopPropagation()
  }

  const at = hover.value
  const pointed = at === undefined ? undefined : { fromMs: Math.floor(at / stepMs) * stepMs, untilMs: at + 1 }
  const chosen =
    drag.value === undefined ? undefined : rangeBetween(drag.value[0], drag.value[1], stepMs, range)
  const { fromMs, untilMs } = chosen ?? pointed ?? range
  const sums = sumsOf(
    (answer?.histogram.buckets ?? []).filter(
      ({ from }) => fromMs <= Date.parse(from) && Date.parse(from) < untilMs,
    ),
  )
  const start = wallTime(fromMs, zone)
  const x = xOf(at ?? 0, range, size.value.width)
  return (
    <section class={`chart ${results.chart.value.loading ? 'loading' : ''}`} aria-label="Entries over time">
      <canvas
        id="chart"
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label="Entries over time. Left and right choose a bar, with Shift a range, Enter zooms in."
        aria-describedby="chart-tip"
        onKeyDown={onKeyDown}
        onBlur={() => (hover.value = drag.value = undefined)}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          drag.value = [timeAt(event), timeAt(event)]
        }}
        onPointerMove={(event) => {
          hover.value = timeAt(event)
          if (drag.value !== undefined) drag.value = [drag.value[0], hover.value]
        }}
        onPointerUp={() => {
          const [begin, end] = drag.value ?? [0, 0]
          if (
            Math.abs(xOf(begin, range, size.value.width) - xOf(end, range, size.value.width)) >=
            DRAG_PIXELS_MIN
          )
            zoom()
          else drag.value = undefined
        }}
        onPointerLeave={() => drag.value === undefined && (hover.value = undefined)}
        onDblClick={() => explorer.zoomOut()}
      />
      <div
        id="chart-tip"
        class="tip"
        role="status"
        hidden={at === undefined}
        style={{ left: `${x > size.value.width / 2 ? x - TIP_WIDTH : x + 28}px` }}
      >
        {at !== undefined && (
          <>
            <span>
              {start.date} {start.time} · {duration(chosen === undefined ? stepMs : untilMs - fromMs)}
            </span>
            <b>{plural(totalOf(sums), 'entry', 'entries')}</b>
            {levelsOf(sums).map((level) => (
              <span class={`level level-${level}`} key={level}>
                {level} {count(sums[level] ?? 0)}
              </span>
            ))}
          </>
        )}
      </div>
      {results.chart.value.problem !== undefined && (
        <p class="hint">No chart: {results.chart.value.problem.message.toLowerCase()}.</p>
      )}
    </section>
  )
}
