export const logLimits = {
  /**
   * Lines of one kind per interval, by level. Warnings are about a dependency, which fails the same way again and again. An error or
   * a line of level info is about one thing: a batch, a chunk, a row. Other levels have no limit: `fatal` precedes the exit, and
   * `debug` and `trace` are for someone who wants every line.
   */
  linesMax: { info: 100, warn: 5, error: 100 } as Readonly<Record<string, number>>,
  intervalMs: 30_000,
  /** Kinds per interval. Sluice has about 50 messages, most of them with one code. Further kinds count together, per level. */
  kindsMax: 200,
  /** Length of a reason that counts as a code. */
  codeLengthMax: 80,
} as const

/** Writes the last line of a kind again, with the number of lines that it stands for. */
type Report = (repeated: number) => void

/**
 * Limits how often lines of the same kind are written: level, message and the code of the error. In each interval, the first lines are
 * written as they are. The others are counted, and the last of them is written at the end of the interval, with their number in
 * `repeated`. So every kind of line is seen, and every line is counted.
 *
 * Idle → counting (from the first line to the end of the interval) → idle.
 */
export class LogLimiter {
  readonly #after: (ms: number, run: () => void) => void
  readonly #kinds = new Map<string, { lines: number; dropped: number; report: Report }>()
  #isCounting = false

  /** @param after runs something once after a time, without keeping the process alive */
  constructor(after: (ms: number, run: () => void) => void) {
    this.#after = after
  }

  /**
   * Decides about one line.
   *
   * @param fields the object of the line, if it has one
   * @returns whether the line is to be written
   */
  admits(level: string, message: string, fields: unknown, report: Report): boolean {
    const linesMax = logLimits.linesMax[level]
    if (linesMax === undefined) return true
    const ownKey = `${level} ${message} ${codeOf(fields)}`
    const key = this.#kinds.has(ownKey) || this.#kinds.size < logLimits.kindsMax ? ownKey : level
    const kind = this.#kinds.get(key) ?? { lines: 0, dropped: 0, report }
    this.#kinds.set(key, kind)
    if (!this.#isCounting) this.#after(logLimits.intervalMs, this.#endInterval)
    this.#isCounting = true
    kind.lines += 1
    if (kind.lines <= linesMax) return true
    kind.dropped += 1
    kind.report = report
    return false
  }

  /** Ends the interval now: reports the lines that were not written. */
  flush(): void {
    const kinds = [...this.#kinds.values()]
    this.#kinds.clear()
    for (const { dropped, report } of kinds) if (dropped > 0) report(dropped)
  }

  readonly #endInterval = (): void => {
    this.#isCounting = false
    this.flush()
  }
}

/**
 * The code of the error that a line is about; empty without one. Its message is not used, since it may contain an address or an id. The
 * numbers of a `reason` are left out, so that waiting times do not make a new kind.
 */
function codeOf(fields: unknown): string {
  const { err = fields, reason, code = reason } = Object(fields) as Readonly<Record<string, unknown>>
  if (!(err instanceof Error)) return typeof code === 'string' ? withoutNumbers(code) : ''
  if ('code' in err && typeof err.code === 'string') return err.code
  // Redis' errors begin with their code.
  return err.name === 'ReplyError' ? withoutNumbers(err.message.split(' ', 1).join('')) : err.name
}

const withoutNumbers = (reason: string): string =>
  reason.slice(0, logLimits.codeLengthMax).replaceAll(/\d+/g, '0')
