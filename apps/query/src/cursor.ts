import { hash } from 'node:crypto'
import { type Micros, timesAllowed } from './times.ts'

type Order = 'asc' | 'desc'

/** A range of timestamps: `fromUs` is included, `untilUs` is not. */
export interface Range {
  readonly fromUs: Micros
  readonly untilUs: Micros
}

/**
 * What is left of a list of entries. The list is fixed by its first page: its time range, and that it has no entry that was received after
 * `receivedUntilMs`. So no page can miss an entry, or have one again, because others arrive meanwhile.
 */
export interface Listing extends Range {
  readonly order: Order
  readonly receivedUntilMs: number
  /** The last entry before the rest. Undefined if the rest begins at an end of the range. */
  readonly last?: { readonly timestampUs: Micros; readonly id: string } | undefined
}

const VERSION = 1
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const CHARACTERS_MAX = 1_000

export const isId = (text: string): boolean => ID.test(text)

/** A cursor has no project: that of the key counts, whoever made the cursor. */
export function cursorOf(listing: Listing, query: string): string {
  const { order, fromUs, untilUs, receivedUntilMs, last } = listing
  const position = last === undefined ? [] : [String(last.timestampUs), last.id]
  const all = [VERSION, digest(query), order, String(fromUs), String(untilUs), receivedUntilMs, ...position]
  return Buffer.from(JSON.stringify(all)).toString('base64url')
}

/** @returns undefined if the text is no cursor, or one of another query */
export function parseCursor(text: string, query: string): Listing | undefined {
  if (text.length > CHARACTERS_MAX) return undefined
  const [version, of, order, from, until, receivedUntilMs, timestamp, id] = parts(text)
  if (version !== VERSION || of !== digest(query) || (order !== 'asc' && order !== 'desc')) return undefined
  if (!Number.isSafeInteger(receivedUntilMs) || Number(receivedUntilMs) < 0) return undefined
  const [fromUs, untilUs] = [micros(from), micros(until)]
  if (fromUs === undefined || untilUs === undefined) return undefined
  const rest: Listing = { order, fromUs, untilUs, receivedUntilMs: Number(receivedUntilMs) }
  if (timestamp === undefined) return rest
  const timestampUs = micros(timestamp)
  if (timestampUs === undefined || typeof id !== 'string' || !isId(id)) return undefined
  return { ...rest, last: { timestampUs, id } }
}

function parts(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

function micros(value: unknown): Micros | undefined {
  if (typeof value !== 'string' || !/^\d{1,16}$/.test(value)) return undefined
  const us = BigInt(value)
  return us > timesAllowed.untilUs ? undefined : us
}

const digest = (query: string): string => hash('sha256', query, 'base64url').slice(0, 12)
