import { Readable } from 'node:stream'
import type { Context, Output } from '../src/context.ts'

export interface FakeContext extends Context {
  /** The output until now. */
  readonly written: { stdout: string; stderr: string }
  /** Acts as Ctrl-C. */
  interrupt(): void
}

/** A process with an empty environment, empty stdin and no local services, except for what is given. */
export function fakeContext(given: Partial<Context> & { readonly terminal?: boolean } = {}): FakeContext {
  const { terminal = false, ...overrides } = given
  const written = { stdout: '', stderr: '' }
  const interrupted = new AbortController()
  const output = (name: 'stdout' | 'stderr'): Output => ({
    isTerminal: terminal,
    colours: terminal,
    write: async (text) => {
      written[name] += text
    },
  })
  return {
    environment: {},
    dataDirectory: new URL('no-such-folder/', import.meta.url).pathname,
    stdin: Readable.from([]),
    stdout: output('stdout'),
    stderr: output('stderr'),
    page: () => false,
    browse: () => undefined,
    nowMs: Date.now,
    random: Math.random,
    abortOnInterrupt: () => interrupted.signal,
    exitCode: 0,
    ...overrides,
    written,
    interrupt: () => interrupted.abort(),
  }
}
