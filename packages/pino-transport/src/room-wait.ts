import type { SluiceClient } from '@sluice/client'
import type { WhenFull } from './options.ts'

/** pino's buffer between the threads. An application that waits until it is read gives the transport up after 10 s. */
const BUFFER_CHARACTERS = 4 * 1024 * 1024

interface Budget {
  /** For each 4 MiB that are read. */
  readonly msPerBuffer: number
  /** What may be saved up, in addition. */
  readonly savedMsMax: number
}

/**
 * - `drop`: for an API that accepts entries a little more slowly than they come.
 * - `wait`: together, and with a second of work, below the 10 s. So the thread waits for an API that accepts at least 600 KB/s.
 */
const budgets: Readonly<Record<WhenFull, Budget>> = {
  drop: { msPerBuffer: 500, savedMsMax: 500 },
  wait: { msPerBuffer: 7_000, savedMsMax: 1_000 },
}

/** Waits until the queue of the client has room, within limits. */
export class RoomWait {
  readonly #client: Pick<SluiceClient, 'waitForRoom'>
  readonly #budget: Budget
  readonly #mayStall: boolean
  readonly #monotonicMs: () => number
  #leftMs: number
  #isStalled = false

  constructor(
    client: Pick<SluiceClient, 'waitForRoom'>,
    whenFull: WhenFull,
    monotonicMs: () => number = () => performance.now(),
  ) {
    this.#client = client
    this.#budget = budgets[whenFull]
    this.#mayStall = whenFull === 'drop'
    this.#monotonicMs = monotonicMs
    this.#leftMs = this.#budget.savedMsMax
  }

  /** Whether, with `drop`, the budget was exceeded and there has been no room since. Then nothing waits. */
  get isStalled(): boolean {
    return this.#isStalled
  }

  /** Adds the budget of a piece of text. */
  begin(characters: number): void {
    const { msPerBuffer, savedMsMax } = this.#budget
    this.#leftMs = Math.min(this.#leftMs, savedMsMax) + (msPerBuffer * characters) / BUFFER_CHARACTERS
  }

  async wait(): Promise<void> {
    if (this.#isStalled) return
    const startedAtMs = this.#monotonicMs()
    const room = this.#client.waitForRoom()
    const hasRoom = await within(room, this.#leftMs)
    this.#leftMs = Math.max(0, this.#leftMs - (this.#monotonicMs() - startedAtMs))
    if (hasRoom || !this.#mayStall) return
    this.#isStalled = true
    void this.#endStall(room)
  }

  async #endStall(room: Promise<void>): Promise<void> {
    await room
    this.#isStalled = false
  }
}

async function within(promise: Promise<void>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, ms, false)
  })
  try {
    return await Promise.race([promise.then(() => true), timeout])
  } finally {
    clearTimeout(timer)
  }
}
