import type { SluiceClient } from '@sluice/client'
import type { WhenFull } from './options.ts'

/**
 * The longest waits for one piece of text, of up to 4 MiB.
 *
 * - `drop`: enough for an API that accepts entries more slowly than they come. While it is unavailable, only one piece waits.
 * - `wait`: pino's thread stream gives the transport up if it does not read a piece within 10 s.
 */
const waitMsMax = { drop: 500, wait: 8_000 } as const

/** Waits until the queue of the client has room, within limits. */
export class RoomWait {
  readonly #client: Pick<SluiceClient, 'waitForRoom'>
  readonly #whenFull: WhenFull
  readonly #monotonicMs: () => number
  #endMs = 0
  #isStalled = false

  constructor(
    client: Pick<SluiceClient, 'waitForRoom'>,
    whenFull: WhenFull,
    monotonicMs: () => number = () => performance.now(),
  ) {
    this.#client = client
    this.#whenFull = whenFull
    this.#monotonicMs = monotonicMs
  }

  /** Whether the last wait was too long, and there has been no room since. */
  get isStalled(): boolean {
    return this.#isStalled
  }

  /** Begins a piece of text. */
  begin(): void {
    this.#endMs = this.#monotonicMs() + waitMsMax[this.#whenFull]
    if (this.#whenFull === 'wait') this.#isStalled = false
  }

  async wait(): Promise<void> {
    if (this.#isStalled) return
    const room = this.#client.waitForRoom()
    if (await within(room, Math.max(0, this.#endMs - this.#monotonicMs()))) return
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
