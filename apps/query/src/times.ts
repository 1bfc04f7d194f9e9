import { periodOf } from '@sluice/query-language'

/** Microseconds since 1970, as ClickHouse stores timestamps. Those after 2255 exceed the integers of a number. */
export type Micros = bigint

/** A time as users write it: absolute, or from now in ms. */
export type Moment = { readonly us: Micros } | { readonly fromNowMs: number }

/** The times that entries may have: 1970 to 2261. */
export const timesAllowed = { fromUs: 0n, untilUs: BigInt(Date.UTC(2262, 0)) * 1_000n } as const

const RELATIVE = /^(?:now)?([+-]\d{1,9})(ms|s|m|h|d|w)$/
const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** @returns undefined if the text is neither a date or time of the years 1970–2261, nor `now`, nor like `-15m` */
export function parseMoment(given: string): Moment | undefined {
  // A plus sign that is not encoded in a URL.
  const text = given.replace(' ', '+')
  if (text === 'now') return { fromNowMs: 0 }
  const [, count, unit = ''] = RELATIVE.exec(text) ?? []
  if (count !== undefined) return { fromNowMs: Number(count) * (unitsMs[unit] ?? 0) }
  const period = periodOf(text)
  return period && { us: microsOf(period.start) }
}

/** @param time UTC with a fraction or without, as queries and ClickHouse have it */
export function microsOf(time: string): Micros {
  const [, seconds = '', fraction = ''] = /^(.{19})(?:\.(\d+))?Z?$/.exec(time) ?? []
  const epochMs = Date.parse(`${seconds.replace(' ', 'T')}Z`)
  return BigInt(epochMs) * 1_000n + BigInt(fraction.padEnd(6, '0').slice(0, 6))
}

/** A time before 1970 counts as 1970, and one after 2261 as its end. */
export function resolve(moment: Moment, nowMs: number): Micros {
  const us = 'us' in moment ? moment.us : BigInt(Math.round(nowMs + moment.fromNowMs)) * 1_000n
  const { fromUs, untilUs } = timesAllowed
  return us < fromUs ? fromUs : us > untilUs ? untilUs : us
}

export const isoMs = (epochMs: number): string => new Date(epochMs).toISOString()

export const isoMicros = (us: Micros): string =>
  `${isoMs(Number(us / 1_000n)).slice(0, -1)}${String(us % 1_000n).padStart(3, '0')}Z`
