import type { Copies } from './audit.ts'
import type { Journal } from './journal.ts'
import { eventually, pause } from './waiting.ts'

/** A tail has an event each second. */
const SILENCE_MS = 20_000
const RECONNECT_MS = 250

interface ViewerTarget {
  readonly url: string
  readonly readKey: string
}

/** A viewer of the tail that counts the entries of a journal. It connects again after each failure, and goes on after the last event that it has. */
export class TailViewer {
  /** Entries that it was told it does not get. */
  skipped = 0
  /** How often it was connected. */
  connections = 0
  readonly #target: ViewerTarget
  readonly #journal: Journal
  readonly #counts: number[] = []
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  readonly #from = new Date().toISOString()
  #completeMs = 0
  #lastId = ''

  constructor(target: ViewerTarget, journal: Journal) {
    this.#target = target
    this.#journal = journal
    this.#running = this.#run()
  }

  get entries(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0)
  }

  /** Waits until it has everything that was received by now, and stops. @returns what it has twice, or lacks without having been told */
  async compare(stored: ReadonlyMap<number, Copies>): Promise<string[]> {
    const nowMs = Date.now()
    await eventually(async () => {
      if (this.#completeMs < nowMs) throw new Error('the tail does not go on')
    })
    this.#stopping.abort()
    await this.#running
    const messages = (numbers: readonly number[]): string =>
      numbers
        .slice(0, 10)
        .map((number) => this.#journal.message(number))
        .join(', ')
    const all = [...stored].map(([number, { rows }]) => ({ number, rows, seen: this.#counts[number] ?? 0 }))
    const repeated = this.#counts.flatMap((seen, number) =>
      seen > (stored.get(number)?.rows ?? 0) ? [number] : [],
    )
    const missing = all.filter(({ rows, seen }) => rows > seen).map(({ number }) => number)
    return [
      ...(repeated.length > 0
        ? [`${repeated.length} entries came again, such as ${messages(repeated)}`]
        : []),
      ...(missing.length > this.skipped
        ? [
            `${missing.length} entries did not come, ${this.skipped} of them skipped, such as ${messages(missing)}`,
          ]
        : []),
    ]
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#follow().catch(() => undefined)
      await pause(RECONNECT_MS, signal)
    }
  }

  /** @throws when the connection ends */
  async #follow(): Promise<void> {
    const { url, readKey } = this.#target
    const silence = new AbortController()
    let timer = setTimeout(() => silence.abort(), SILENCE_MS)
    try {
      const response = await fetch(`${url}/v1/query/tail?from=${this.#from}`, {
        headers: {
          authorization: `Bearer ${readKey}`,
          ...(this.#lastId !== '' && { 'last-event-id': this.#lastId }),
        },
        signal: AbortSignal.any([this.#stopping.signal, silence.signal]),
      })
      if (!response.ok) return
      this.connections += 1
      let rest = ''
      for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        clearTimeout(timer)
        timer = setTimeout(() => silence.abort(), SILENCE_MS)
        const events = (rest + text).split('\n\n')
        rest = events.pop() ?? ''
        for (const event of events) this.#read(event)
      }
    } finally {
      clearTimeout(timer)
    }
  }

  #read(event: string): void {
    const fields = Object.fromEntries(event.split('\n').map((line) => line.split(/: (.*)/s, 2)))
    const data = JSON.parse(fields['data'] ?? '{}') as {
      readonly entries?: readonly { readonly message: string }[]
      readonly count?: number
      readonly complete_until?: string | null
    }
    for (const { message } of data.entries ?? []) {
      if (!message.startsWith(`${this.#journal.label}-`)) continue
      const number = Number(message.slice(this.#journal.label.length + 1))
      this.#counts[number] = (this.#counts[number] ?? 0) + 1
    }
    this.skipped += data.count ?? 0
    if (typeof data.complete_until === 'string')
      this.#completeMs = Math.max(this.#completeMs, Date.parse(data.complete_until))
    this.#lastId = fields['id'] ?? this.#lastId
  }
}
