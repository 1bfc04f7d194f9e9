import type { Readable } from 'node:stream'

/** Where a command writes to. */
export interface Output {
  /** Whether a person is looking: progress is shown, and cleared again. */
  readonly isTerminal: boolean
  /** Whether colours are wanted: on terminals, unless NO_COLOR says otherwise. */
  readonly colours: boolean
  /** How many characters fit on a line. */
  columns(): number
  /** Resolves when there is room for more. */
  write(text: string): Promise<void>
}

/** All that the commands get from the process around them; `main.ts` makes the real one. */
export interface Context {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Where `npm start` keeps its data, and `local.json` with the addresses of what it started. */
  readonly dataDirectory: string
  readonly stdin: Readable
  /** Whether a person can answer a question. */
  readonly stdinIsTerminal: boolean
  readonly stdout: Output
  readonly stderr: Output
  readonly nowMs: () => number
  /** 0 ≤ random < 1 */
  readonly random: () => number
  /**
   * For commands that end in order when they are interrupted: from now on the first Ctrl-C aborts this signal, and only
   * the second ends the process. Until then, the first one does.
   */
  takeInterrupts(): AbortSignal
  /** What the process ends with, for a command that has already said why. */
  exitCode: number
}

/** What a process ends with after Ctrl-C, by the shells' convention. */
export const INTERRUPTED_EXIT_CODE = 130
