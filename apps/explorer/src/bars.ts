import { levels } from '@sluice/schema/limits'
import { DAY_MS, offsetMs, type TimeRange } from './times.ts'

/** A bucket of the API's histogram. */
export interface Bucket {
  readonly from: string
  readonly counts: Readonly<Record<string, number>>
}
export interface Histogram {
  readonly step_ms: number
  readonly buckets: readonly Bucket[]
  readonly total: number
}

interface Bar {
  readonly fromMs: number
  readonly x: number
  readonly width: number
  /** From the bottom. */
  readonly parts: readonly { readonly level: string; readonly y: number; readonly height: number }[]
}

export const xOf = (ms: number, { fromMs, untilMs }: TimeRange, width: number): number =>
  ((ms - fromMs) / (untilMs - fromMs)) * width

export const timeOf = (x: number, { fromMs, untilMs }: TimeRange, width: number): number =>
  fromMs + (Math.min(width, Math.max(0, x)) / width) * (untilMs - fromMs)

/** The next of 1, 2, 5, 10, 20 …: the top of the chart. */
export function niceMax(count: number): number {
  if (count <= 1) return 1
  const magnitude = 10 ** Math.floor(Math.log10(count))
  return magnitude * ([1, 2, 5].find((factor) => count <= factor * magnitude) ?? 10)
}

const add = (sum: number, one: number): number => sum + one
export const totalOf = (counts: Bucket['counts']): number => Object.values(counts).reduce(add, 0)

/** The levels that have entries, the most severe one first. */
export const levelsOf = (counts: Bucket['counts']): string[] =>
  [...new Set([...levels.toReversed(), ...Object.keys(counts)])].filter((level) => (counts[level] ?? 0) > 0)

/**
 * Bars of stacked parts, and the count at the top. The level that matters most is at the bottom, where heights are easy to compare. A part
 * that is not empty has a pixel at least: one error among a million entries is seen.
 */
export function barsOf(
  { step_ms: stepMs, buckets }: Histogram,
  range: TimeRange,
  size: { readonly width: number; readonly height: number },
): { readonly max: number; readonly bars: Bar[] } {
  const max = niceMax(Math.max(1, ...buckets.map(({ counts }) => totalOf(counts))))
  const bars = buckets.flatMap(({ from, counts }): Bar[] => {
    const fromMs = Date.parse(from)
    const left = Math.max(0, xOf(fromMs, range, size.width))
    const right = Math.min(size.width, xOf(fromMs + stepMs, range, size.width))
    if (right <= left) return []
    let top = size.height
    const parts = levelsOf(counts).map((level) => {
      const height = Math.max(1, ((counts[level] ?? 0) / max) * size.height)
      top -= height
      return { level, y: top, height }
    })
    return [{ fromMs, x: left, width: Math.max(1, right - left - (right - left > 4 ? 1 : 0)), parts }]
  })
  return { max, bars }
}

/** The range between two places, with whole buckets, and within what the chart shows. */
export function rangeBetween(startMs: number, endMs: number, stepMs: number, range: TimeRange): TimeRange {
  const fromMs = Math.floor(Math.min(startMs, endMs) / stepMs) * stepMs
  const untilMs = Math.ceil(Math.max(startMs, endMs) / stepMs) * stepMs
  return {
    fromMs: Math.max(range.fromMs, fromMs),
    untilMs: Math.min(range.untilMs, Math.max(untilMs, fromMs + stepMs)),
  }
}

/** Twice or more of the range around its middle, and never the future. */
export function widen({ fromMs, untilMs }: TimeRange, nowMs: number, factor = 3): TimeRange {
  const extra = ((untilMs - fromMs) * (factor - 1)) / 2
  const end = Math.min(Math.max(nowMs, untilMs), untilMs + extra)
  return { fromMs: Math.round(end - (untilMs - fromMs) * factor), untilMs: Math.round(end) }
}

const tickSteps = [
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 3, 6, 12].map((hours) => hours * 3_600_000),
  ...[1, 2, 7, 14, 30, 90, 365].map((days) => days * DAY_MS),
]

/** Round times on the clocks of the zone, at most one in `gap` pixels. */
export function ticksOf(
  range: TimeRange,
  width: number,
  zone: string,
  gap: number,
): { readonly step: number; readonly times: readonly number[] } {
  const span = range.untilMs - range.fromMs
  const step = tickSteps.find((ms) => (ms / span) * width >= gap) ?? span
  const offset = offsetMs(range.fromMs, zone)
  const times: number[] = []
  for (let at = Math.ceil((range.fromMs + offset) / step) * step - offset; at < range.untilMs; at += step)
    times.push(at)
  return { step, times }
}
