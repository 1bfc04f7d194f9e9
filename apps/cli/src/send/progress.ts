import type { Output } from '../context.ts'
import { escapeControls, painter } from '../terminal.ts'

/** Faster changes are not visible. */
const REDRAW_INTERVAL_MS = 100
const CLEAR_LINE = '\r\u001B[2K'

export interface ProgressState {
  readonly bytesRead: number
  /** Undefined for a stream, whose size is unknown. */
  readonly bytesTotal: number | undefined
  readonly accepted: number
  readonly rejected: number
  readonly elapsedMs: number
}

/** Draws a progress line at the bottom of a terminal, with notes above it. Prints only the notes elsewhere. */
export class Progress {
  readonly #output: Output
  readonly #state: () => ProgressState
  #timer: NodeJS.Timeout | undefined

  constructor(output: Output, state: () => ProgressState) {
    this.#output = output
    this.#state = state
  }

  start(): void {
    if (!this.#output.isTerminal) return
    this.#timer = setInterval(() => this.#write(''), REDRAW_INTERVAL_MS)
    this.#timer.unref()
  }

  /** Prints a line that stays. The text may be untrusted: it is made safe to print. */
  note(text: string): void {
    this.#write(`${escapeControls(text)}\n`)
  }

  /** Clears the progress line. */
  stop(): void {
    clearInterval(this.#timer)
    if (this.#timer !== undefined) this.#print(CLEAR_LINE)
    this.#timer = undefined
  }

  #write(note: string): void {
    if (this.#timer === undefined) return this.#print(note)
    const line = progressLine(this.#state()).slice(0, this.#output.columns() - 1)
    this.#print(`${CLEAR_LINE}${note}${painter(this.#output.colours)('cyan', line)}`)
  }

  /** Does not wait until the terminal has room: the output is small, and the line is redrawn anyway. */
  #print(text: string): void {
    if (text !== '') void this.#output.write(text)
  }
}

/** For example `45 %  5,400 accepted, 2 rejected, 9,800/s`. A stream has no fraction. */
export function progressLine({
  bytesRead,
  bytesTotal,
  accepted,
  rejected,
  elapsedMs,
}: ProgressState): string {
  const fraction = bytesTotal === 0 ? 1 : Math.min(1, bytesRead / (bytesTotal ?? Number.NaN))
  return (
    (bytesTotal === undefined ? '' : `${String(Math.floor(fraction * 100)).padStart(3)} %  `) +
    `${formatCount(accepted)} accepted, ${rejected === 0 ? '' : `${formatCount(rejected)} rejected, `}` +
    `${formatCount(perSecond(accepted + rejected, elapsedMs))}/s`
  )
}

export function perSecond(count: number, elapsedMs: number): number {
  return Math.round((count * 1_000) / Math.max(1, elapsedMs))
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US')
}
