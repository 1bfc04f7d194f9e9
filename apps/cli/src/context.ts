import type { Readable } from 'node:stream'

export interface Output {
  readonly isTerminal: boolean
  readonly colours: boolean
  /** Resolves when the stream has room for more. */
  write(text: string): Promise<void>
}

export interface Context {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Where `npm start` keeps its data, and `local.json` with the addresses of the services it runs. */
  readonly dataDirectory: string
  readonly stdin: Readable
  readonly stdout: Output
  readonly stderr: Output
  /** Shows a text in a pager, and waits for its end, if the text is longer than the screen. @returns whether it was shown */
  readonly page: (text: string) => boolean
  /** Opens a page in a browser, if there is one. */
  readonly browse: (url: string) => void
  readonly nowMs: () => number
  readonly random: () => number
  /**
   * For commands that stop gracefully when they are interrupted. After this call the first Ctrl-C aborts the returned
   * signal, and the second Ctrl-C exits the process. Without this call the first Ctrl-C exits the process.
   */
  abortOnInterrupt(): AbortSignal
  /** The exit code of the process. Set by commands that have already reported why they failed. */
  exitCode: number
}

/** The exit code after Ctrl-C, by the convention of shells: 128 + 2 (SIGINT). */
export const INTERRUPTED_EXIT_CODE = 130
