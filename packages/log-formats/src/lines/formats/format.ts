import type { TimeReader } from '../../times/time-reader.ts'
import type { LogLine } from './log-line.ts'

/** What formats need to read a line. */
export interface FormatContext {
  readonly time: TimeReader
  /** For fields of records: their times without an offset are UTC. */
  readonly fieldTime: TimeReader
  /** Parses JSON, with all digits of numbers. Throws if the text is not JSON. */
  readonly parseJson: (text: string) => unknown
}

/** A layout of lines. Reads a whole line, and returns undefined if the line has another layout. */
export type LineFormat = (text: string, context: FormatContext) => LogLine | undefined

/** The first match of an expression at a position. The expression must be sticky. */
export function matchAt(expression: RegExp, text: string, at: number): RegExpExecArray | undefined {
  expression.lastIndex = at
  return expression.exec(text) ?? undefined
}
