/** A kind of lines: see `keyOf`. */
interface Window {
  readonly startedMs: number
  readonly linesMax: number
  lines: number
  /** Lines of this interval that were not written. */
  dropped: number
  /** Writes the last of them, with its fields and their number. Without one it writes nothing. */
  report: (repeated: number) => void
}

export const logLimits = {
  /**
   * Lines of one kind per interval, by level. Warnings are about a dependency, which fails the same way again and again. An error or
   * a line of level info is about one thing: a batch, a chunk, a row. Other levels have no limit: `fatal` precedes the exit, and
   * `debug` and `trace` are for someone who wants every line.
   */
  linesMax: { info: 100, warn: 5, error: 100 } as Readonly<Record<string, number>>,
  intervalMs: 30_000,
  /** Kinds with a window of their own. Sluice has about 50 messages, most of them with one code. Further kinds share a window per level. */
  kindsMax: 200,
  /** Of a text in the place of a code. */
  codeLengthMax: 80,
} as const

export interface LogLimiterOptions {
  readonly monotonicMs: () => number
  /** Runs something once after a time, without keeping the process alive. */
  readonly after: (ms: number, run: () => void) => void
}

/**
 * Limits how often lines of the same kind are written: level, message and the code of the error. In each interval, the first lines are
 * written as they are. The others are counted, and the last of them is written at the end of the interval, with their number in
 * `repeated`. So every kind of line is seen, and every line is counted.
 *
 * A kind: closed → open (its first line) → closed (at the end of the interval).
 */
export class LogLimiter {
  readonly #options: LogLimiterOptions
  readonly #windows = new Map<string, Window>()
  #isTimerSet = false
  #linesDropped = 0

  constructor(options: LogLimiterOptions) {
    this.#options = options
  }

  /** Lines that were not written because of their number. */
  get linesDropped(): number {
    return this.#linesDropped
  }

  /**
   * Decides about one line.
   *
   * @param fields the object of the line, if it has one
   * @param report writes the line with the number of lines that it stands for, if it is the last one of its interval that is dropped
   * @returns whether the line is to be written
   */
  admits(level: string, message: string, fields: unknown, report: (repeated: number) => void): boolean {
    const linesMax = logLimits.linesMax[level]
    if (linesMax === undefined) return true
    const window = this.#windowOf(level, `${level} ${message} ${codeOf(fields)}`, linesMax)
    if (window.lines < window.linesMax) {
      window.lines += 1
      return true
    }
    window.dropped += 1
    window.report = report
    this.#linesDropped += 1
    return false
  }

  /** Ends all intervals now: writes what they have not written. */
  flush(): void {
    for (const [key, window] of this.#windows) this.#close(key, window)
  }

  #windowOf(level: string, key: string, linesMax: number): Window {
    const isFull = this.#windows.size >= logLimits.kindsMax
    const ownKey = isFull && !this.#windows.has(key) ? level : key
    const open = this.#windows.get(ownKey)
    if (open !== undefined) return open
    const window: Window = {
      startedMs: this.#options.monotonicMs(),
      linesMax,
      lines: 0,
      dropped: 0,
      report: () => undefined,
    }
    this.#windows.set(ownKey, window)
    this.#setTimer(logLimits.intervalMs)
    return window
  }

  #setTimer(ms: number): void {
    if (this.#isTimerSet) return
    this.#isTimerSet = true
    this.#options.after(ms, () => {
      this.#isTimerSet = false
      this.#closeOld()
    })
  }

  #closeOld(): void {
    const nowMs = this.#options.monotonicMs()
    let nextMs = Number.POSITIVE_INFINITY
    for (const [key, window] of this.#windows) {
      const leftMs = window.startedMs + logLimits.intervalMs - nowMs
      if (leftMs <= 0) this.#close(key, window)
      else nextMs = Math.min(nextMs, leftMs)
    }
    if (this.#windows.size > 0) this.#setTimer(nextMs)
  }

  #close(key: string, { dropped, report }: Window): void {
    this.#windows.delete(key)
    report(dropped)
  }
}

/**
 * The code of the error that a line is about; empty without one. Its message is not used, since it may contain an address or an id. A
 * `reason` is a text: its numbers are left out, so that waiting times do not make a new kind.
 */
function codeOf(fields: unknown): string {
  if (typeof fields !== 'object' || fields === null) return ''
  const error: unknown = fields instanceof Error ? fields : 'err' in fields ? fields.err : undefined
  if (error instanceof Error) return codeOfError(error)
  const text = 'code' in fields ? fields.code : 'reason' in fields ? fields.reason : undefined
  return typeof text === 'string' ? withoutNumbers(text) : ''
}

/** Redis' errors begin with their code. */
function codeOfError(error: Error): string {
  if ('code' in error && typeof error.code === 'string') return error.code
  const [first = ''] = error.message.split(' ', 1)
  return error.name === 'ReplyError' ? withoutNumbers(first) : error.name
}

function withoutNumbers(text: string): string {
  return text.slice(0, logLimits.codeLengthMax).replaceAll(/\d+/g, '0')
}
