import type { SluiceClient } from '@sluice/client'
import type { WhenFull } from './options.ts'

/** A thread that keeps up gets less at once: pino's buffer between the threads has 4 MiB. */
const LARGE_CHARACTERS = 1024 * 1024
/** A burst of 80,000 usual lines. The application needs about ten times this memory for lines that wait. */
const LARGE_CHARACTERS_IN_A_ROW_MAX = 16 * 1024 * 1024

/** pino's buffer between the threads. */
const BUFFER_CHARACTERS = 4 * 1024 * 1024

/**
 * How long the thread may take for each 4 MiB, if it waits, and what may be saved up in addition.
 *
 * - `drop`: for an API that accepts entries a little more slowly than they come.
 * - `wait`: an application that waits until the buffer is read ends the transport after 10 s, on a busy machine after 8 s. With 5 s, the
 *   thread waits for an API that accepts at least 1 MB/s.
 */
const budgets = {
  drop: { msPerBuffer: 500, savedMsMax: 500, mayDrop: true },
  wait: { msPerBuffer: 4_000, savedMsMax: 1_000, mayDrop: false },
} as const

/** How fast the thread reads: waits until the queue of the client has room, within limits, and notices when it falls behind. */
export class Pace {
  readonly #client: Pick<SluiceClient, 'waitForRoom'>
  readonly #budget: (typeof budgets)[WhenFull]
  readonly #monotonicMs: () => number
  #savedMs: number
  #endMs = 0
  /** Whether, with `drop`, the budget was exceeded and there has been no room since. Then nothing waits. */
  #isStalled = false
  #charactersInARow = 0
  #isWaitingForRoom = false
  #onRoom: () => void = () => undefined

  constructor(
    client: Pick<SluiceClient, 'waitForRoom'>,
    whenFull: WhenFull,
    monotonicMs: () => number = () => performance.now(),
  ) {
    this.#client = client
    this.#budget = budgets[whenFull]
    this.#monotonicMs = monotonicMs
    this.#savedMs = this.#budget.savedMsMax
  }

  /**
   * Whether, with `drop`, the lines of a piece should be skipped: the application logs faster than this thread reads. pino keeps the
   * lines in the application's memory, and does not say how many there are. But each piece is then as large as the buffer between the threads.
   * While the API accepts nothing, most lines would be dropped after they were encoded.
   */
  isBehind(characters: number): boolean {
    this.#charactersInARow = characters < LARGE_CHARACTERS ? 0 : this.#charactersInARow + characters
    const max = this.#isStalled ? 0 : LARGE_CHARACTERS_IN_A_ROW_MAX
    return this.#budget.mayDrop && this.#charactersInARow > max
  }

  begin(characters: number): void {
    const budgetMs = (this.#budget.msPerBuffer * characters) / BUFFER_CHARACTERS
    this.#endMs = this.#monotonicMs() + this.#savedMs + budgetMs
  }

  end(): void {
    const leftMs = this.#endMs - this.#monotonicMs()
    this.#savedMs = Math.min(Math.max(0, leftMs), this.#budget.savedMsMax)
  }

  /** @param bytes the most that is then added to the queue */
  async wait(bytes: number): Promise<void> {
    if (this.#isStalled) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, this.#endMs - this.#monotonicMs()))
      this.#onRoom = () => {
        clearTimeout(timer)
        resolve()
      }
      if (!this.#isWaitingForRoom) void this.#waitForRoom(bytes)
    })
    // Otherwise there is room.
    if (this.#budget.mayDrop) this.#isStalled = this.#isWaitingForRoom
  }

  /** One at a time: it may last as long as an outage, and each needs memory and a timer. */
  async #waitForRoom(bytes: number): Promise<void> {
    this.#isWaitingForRoom = true
    await this.#client.waitForRoom(bytes)
    this.#isWaitingForRoom = false
    this.#isStalled = false
    this.#onRoom()
  }
}
