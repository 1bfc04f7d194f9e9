import { Readable } from 'node:stream'
import type { Context, Output } from '../src/context.ts'

export interface FakeContext extends Context {
  /** What was written so far. */
  readonly written: { stdout: string; stderr: string }
  /** As Ctrl-C does. */
  interrupt(): void
}

/** A process without an environment, without local services and with `stdin` as its input. */
export function fakeContext(given: Partial<Context> & { readonly terminal?: boolean } = {}): FakeContext {
  const { terminal = false, ...overrides } = given
  const written = { stdout: '', stderr: '' }
  const interrupted = new AbortController()
  const output = (name: 'stdout' | 'stderr'): Output => ({
    isTerminal: terminal,
    colours: terminal,
    columns: () => 80,
    write: async (text) => {
      written[name] += text
    },
  })
  return {
    environment: {},
    dataDirectory: new URL('no-such-folder/', import.meta.url).pathname,
    stdin: Readable.from([]),
    stdinIsTerminal: terminal,
    stdout: output('stdout'),
    stderr: output('stderr'),
    nowMs: Date.now,
    random: Math.random,
    takeInterrupts: () => interrupted.signal,
    exitCode: 0,
    ...overrides,
    written,
    interrupt: () => interrupted.abort(),
  }
}
