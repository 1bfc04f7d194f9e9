import type { SqlCondition } from '@sluice/query-language'
import type { EntryRow } from '../entries.ts'
import { isoMs } from '../times.ts'
import { isAfter, type Position, positionText } from './position.ts'

const viewerLimits = {
  /** Entries that a viewer gets for each second of their receipt. Nobody reads more, and a browser could not show them. */
  entriesPerSecond: 1_000,
  /** Bytes that wait for a viewer which reads slowly. It misses entries then, and is told how many. Less, if many viewers share the memory. */
  bufferBytesMax: 1024 * 1024,
  buffersBytesMax: 96 * 1024 * 1024,
} as const

/** The connection of a viewer. */
export interface Sink {
  write(text: string): void
  /** What is written and not yet taken by the operating system. */
  readonly bufferedBytes: number
  /** Resolves when little is buffered, or the connection is closed. */
  drained(): Promise<void>
  close(): void
}

export interface ViewerOptions {
  readonly sink: Sink
  /** The query, and what decides by it. Viewers with the same text share the decision. */
  readonly text: string
  readonly condition: SqlCondition
  readonly matches: (row: EntryRow) => boolean
  readonly position: Position
  /** Rejects when the viewer may not see the project any more. */
  readonly check: () => Promise<unknown>
  /** How many viewers share the memory. */
  readonly viewers: () => number
}

/** One that watches entries arrive: its position, and the events that it gets. */
export class Viewer {
  readonly options: ViewerOptions
  position: Position
  /** Whether it has a query of its own at present, instead of the one that all viewers of the project share. */
  isBehind = false
  #allowance = 0
  #pending: string[] = []
  #pendingBytes = 0
  #skipped = 0

  constructor(options: ViewerOptions) {
    this.options = options
    this.position = options.position
  }

  /** Entries up to this time follow. */
  expect(untilMs: number): void {
    const seconds = Math.max(1, Math.ceil((untilMs - this.position.receivedMs) / 1_000))
    this.#allowance = seconds * viewerLimits.entriesPerSecond
  }

  /** Takes a matching entry, unless it has it already. It is sent by `flush`. */
  offer(at: Position, json: () => string): void {
    if (!isAfter(at, this.position)) return
    if (this.#allowance === 0 || this.#isFull) {
      this.#skipped += 1
      return
    }
    this.#allowance -= 1
    const text = json()
    this.#pending.push(text)
    this.#pendingBytes += text.length
  }

  /** Sends what it has taken. Everything up to a position was offered to it. */
  flush(at: Position): void {
    if (!isAfter(at, this.position)) return
    this.position = at
    if (this.#pending.length === 0) return
    // First: it may resume after these entries, and would never be told.
    this.#reportSkipped()
    this.#send('entries', `{"entries":[${this.#pending.join(',')}]}`, at)
    this.#pending = []
    this.#pendingBytes = 0
  }

  /** Tells how far the viewer is, and what it has missed. A viewer that is slow is told later. */
  report(completeMs: number | null): void {
    if (this.#isFull) return
    this.#reportSkipped()
    const until = completeMs === null ? null : isoMs(completeMs)
    this.#send('complete', JSON.stringify({ complete_until: until }), this.position)
  }

  /** Whether it should read before it gets more. */
  get isBusy(): boolean {
    return this.options.sink.bufferedBytes > this.#bufferBytesMax / 2
  }

  #reportSkipped(): void {
    if (this.#skipped > 0) this.#send('skipped', JSON.stringify({ count: this.#skipped }))
    this.#skipped = 0
  }

  get #isFull(): boolean {
    return this.options.sink.bufferedBytes + this.#pendingBytes > this.#bufferBytesMax
  }

  get #bufferBytesMax(): number {
    return Math.min(viewerLimits.bufferBytesMax, viewerLimits.buffersBytesMax / this.options.viewers())
  }

  #send(event: string, data: string, at?: Position): void {
    const id = at === undefined ? '' : `id: ${positionText(at)}\n`
    this.options.sink.write(`${id}event: ${event}\ndata: ${data}\n\n`)
  }
}
