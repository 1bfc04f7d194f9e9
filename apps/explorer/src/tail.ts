import { parseJsonExactly } from '@sluice/rows/exact-json'
import { type Api, type Completeness, type Parameters, Problem } from './api.ts'
import type { Entry } from './entry.ts'

export interface ServerEvent {
  readonly name: string
  readonly data: string
}

/** Reads a stream of server-sent events (HTML, section 9.2.6). */
export class EventReader {
  /** What a reconnect sends, so that the server continues after it. */
  lastId = ''
  #rest = ''
  #id: string | undefined
  #name = ''
  #data: string[] = []

  /** @returns the events that this piece completes */
  read(piece: string): ServerEvent[] {
    const events: ServerEvent[] = []
    const lines = (this.#rest + piece).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      const [, field = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
      if (line === '') {
        // The id counts once its event is here as a whole.
        this.lastId = this.#id ?? this.lastId
        if (this.#data.length > 0) events.push({ name: this.#name || 'message', data: this.#data.join('\n') })
        this.#id = undefined
        this.#name = ''
        this.#data = []
      } else if (field === 'id') this.#id = value
      else if (field === 'event') this.#name = value
      else if (field === 'data') this.#data.push(value)
    }
    return events
  }

  /** Forgets an event that a broken connection left incomplete. */
  reconnect(): void {
    this.#rest = ''
    this.#id = undefined
    this.#name = ''
    this.#data = []
  }
}

interface TailListener {
  entries(entries: readonly Entry[]): void
  completeUntil(time: string): void
  /** Entries that the server left out, since they were too many. */
  skipped(count: number): void
  /** Undefined: connected. */
  connection(problem: Problem | undefined): void
}

/** Between two attempts to connect: short, for a server that restarts, then longer. */
const RECONNECT_MS = [250, 500, 1000, 2000, 5000]
/** The server sends at least a comment in half of this time. */
const SILENCE_MS_MAX = 45_000

/** Follows the matching entries until it is aborted. It reconnects, and continues after the last event that it has. */
export async function follow(
  api: Api,
  parameters: Parameters,
  listener: TailListener,
  signal: AbortSignal,
): Promise<void> {
  const reader = new EventReader()
  for (let failures = 0; !signal.aborted; failures += 1) {
    const silence = new AbortController()
    let timer = setTimeout(() => silence.abort(), SILENCE_MS_MAX)
    try {
      const stream = await api.tail(parameters, reader.lastId, AbortSignal.any([signal, silence.signal]))
      listener.connection(undefined)
      for await (const piece of stream.pipeThrough(
        new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>,
      )) {
        failures = 0
        clearTimeout(timer)
        timer = setTimeout(() => silence.abort(), SILENCE_MS_MAX)
        for (const { name, data } of reader.read(piece)) {
          const event = parseJsonExactly(data) as Completeness & { entries?: Entry[]; count?: number }
          if (name === 'entries' && event.entries !== undefined) listener.entries(event.entries)
          if (name === 'skipped') listener.skipped(event.count ?? 0)
          if (typeof event.complete_until === 'string') listener.completeUntil(event.complete_until)
        }
      }
      throw new Problem(0, { title: 'The server closed the connection' })
    } catch (error) {
      clearTimeout(timer)
      if (signal.aborted) return
      const problem = error instanceof Problem ? error : new Problem(0, { title: 'The connection broke' })
      listener.connection(problem)
      // A query or key that is refused stays refused.
      if (problem.isFinal) return
      reader.reconnect()
      const waitMs = problem.retryAfterMs || (RECONNECT_MS[failures] ?? RECONNECT_MS.at(-1) ?? 0)
      await new Promise((resolve) => setTimeout(resolve, waitMs))
    }
  }
}
