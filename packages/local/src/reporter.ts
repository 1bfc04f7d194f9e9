import { styleText } from 'node:util'
import type { KeepAliveReport } from './keep-alive.ts'
import type { Progress } from './stack.ts'

/** Writes to people how things go, a line at a time; coloured if they look at a terminal. */
export class Reporter implements Progress, KeepAliveReport {
  readonly #write: (text: string) => void
  readonly #colours: boolean

  constructor(write: (text: string) => void, colours: boolean) {
    this.#write = write
    this.#colours = colours
  }

  note(text: string): void {
    this.#line(this.paint('dim', '…'), text)
  }

  done(text: string, tookMs: number): void {
    this.#line(this.paint('green', '✓'), `${text} ${this.paint('dim', `(${(tookMs / 1000).toFixed(1)} s)`)}`)
  }

  warn(text: string): void {
    this.#line(this.paint('yellow', '!'), text)
  }

  /** @param details what helps to find the cause, a line each */
  fail(text: string, details: readonly string[] = []): void {
    this.#line(this.paint('red', '✗'), text)
    for (const detail of details) this.#write(`    ${detail}\n`)
  }

  text(text: string): void {
    this.#write(text)
  }

  paint(format: 'bold' | 'cyan' | 'dim' | 'green' | 'red' | 'yellow', text: string): string {
    return this.#colours ? styleText(format, text, { validateStream: false }) : text
  }

  #line(mark: string, text: string): void {
    this.#write(`${mark} ${text}\n`)
  }
}
