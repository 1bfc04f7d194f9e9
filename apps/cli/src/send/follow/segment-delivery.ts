import type { AssemblerMemory } from '@sluice/log-formats'
import { createHash } from 'node:crypto'
import type { FollowState, Segment } from './follow-state.ts'
import type { Answer } from './keyed-sender.ts'
import type { Slots } from './slots.ts'

/** An entry of a followed file. */
export interface FollowedEntry {
  readonly entry: string
  readonly bytes: number
  /** Human-readable: `file:byte`. */
  readonly origin: string
  /** Where to continue when this entry and all before it are acknowledged. */
  readonly resumeAt: number
  /** What the lines before `resumeAt` say about those after it. */
  readonly memory: AssemblerMemory | undefined
}

export interface DeliveryContext {
  readonly state: FollowState
  /** For the requests of all files. */
  readonly slots: Slots
  /** @returns undefined if the API did not answer before the end */
  readonly post: (entries: readonly string[], idempotencyKey: string) => Promise<Answer | undefined>
  readonly onAnswer: (entries: readonly FollowedEntry[], answer: Answer) => void
  /** Called for an error that ends the whole command. */
  readonly onFailure: (error: unknown) => void
}

interface Request {
  readonly resumeAt: number
  readonly memory: AssemblerMemory | undefined
  isAcknowledged: boolean
}

/**
 * Sends the requests of one file, several at a time, and advances its offset over those that are acknowledged.
 *
 * Before a request is sent, its end is persisted. After a crash, the same bytes become the same request again, with the
 * same idempotency key: the API stores none of its entries twice.
 */
export class SegmentDelivery {
  readonly #segment: Segment
  readonly #context: DeliveryContext
  readonly #requests: Request[] = []
  readonly #sending = new Set<Promise<void>>()
  /** The ends of requests of an earlier process, which will be made again. */
  readonly #earlierEnds: readonly number[]
  /** Where the next request begins. */
  #start: number

  constructor(segment: Segment, context: DeliveryContext) {
    this.#segment = segment
    this.#context = context
    this.#start = segment.offset
    this.#earlierEnds = segment.ends
  }

  /** Resolves when the request is in flight. Throws nothing: failures go to `onFailure`. */
  async send(entries: readonly FollowedEntry[]): Promise<void> {
    const last = entries.at(-1)
    if (last === undefined) return
    const { state, slots } = this.#context
    const texts = entries.map(({ entry }) => entry)
    const key = this.#keyOf(texts)
    const request: Request = { resumeAt: last.resumeAt, memory: last.memory, isAcknowledged: false }
    this.#requests.push(request)
    this.#start = last.resumeAt
    this.#noteEnds()
    await slots.acquire()
    const sending = state
      .save()
      .then(() => this.#post(entries, texts, key, request))
      .catch((error: unknown) => this.#context.onFailure(error))
      .finally(() => {
        slots.release()
        this.#sending.delete(sending)
      })
    this.#sending.add(sending)
  }

  /** Resolves when all requests are answered, or have failed. */
  async settled(): Promise<void> {
    while (this.#sending.size > 0) await Promise.all(this.#sending)
  }

  get isComplete(): boolean {
    return this.#requests.length === 0
  }

  async #post(
    entries: readonly FollowedEntry[],
    texts: readonly string[],
    key: string,
    request: Request,
  ): Promise<void> {
    const answer = await this.#context.post(texts, key)
    if (answer === undefined) return
    this.#context.onAnswer(entries, answer)
    request.isAcknowledged = true
    this.#advance()
    await this.#context.state.save()
  }

  #advance(): void {
    while (this.#requests[0]?.isAcknowledged === true) {
      this.#segment.offset = this.#requests[0].resumeAt
      this.#segment.memory = this.#requests[0].memory
      this.#requests.shift()
    }
    this.#noteEnds()
  }

  #noteEnds(): void {
    this.#segment.ends = [
      ...this.#requests.map(({ resumeAt }) => resumeAt),
      ...this.#earlierEnds.filter((end) => end > this.#start),
    ]
  }

  #keyOf(texts: readonly string[]): string {
    const hash = createHash('sha256').update(`${this.#segment.generation}:${this.#start}`)
    for (const text of texts) hash.update('\n').update(text)
    return `follow-${hash.digest('base64url')}`
  }
}
