import { startTimer } from '../platform.ts'
import type { Disk, Lock } from './disk.ts'

/** As many as threads in which Node uses the disk. Each has the bytes of one batch in memory. */
const OPERATIONS_RUNNING_MAX = 4
/** Each needs about 1 KB of memory. A disk that works needs a millisecond for each. On a disk that hangs, they are not gathered without end. */
const OPERATIONS_MAX = 16_384
/** How long a request waits for the disk. A busy or waking disk takes a second or two. A hanging disk must not stop all sending. */
const DISK_RESPONSE_MS = 5_000
/** How long a disk is waited for after an abort. Usually, a write takes a millisecond. */
const CLOSE_MS = 500

/** The operations of one client in its directory: few at a time, and waited for only for a limited time. */
export class DiskAccess {
  readonly disk: Disk
  readonly directory: string
  /** Undefined while there is no directory. */
  lock: Promise<Lock> | undefined
  /** The counted bytes of all records. */
  bytes = 0
  isAborted = false
  /** Gets the first failure after a success. */
  onError: ((message: string, cause: unknown) => void) | undefined
  isFailing = false
  /** Operations that have not ended, and how many of them are running. The others wait. */
  #operations = 0
  #running = 0
  readonly #waiting: (() => void)[] = []
  /** Operations that have not ended in time, and may still end. */
  #overdue = 0
  /** End the waits for operations. */
  readonly #giveUps = new Set<() => void>()

  constructor(disk: Disk, directory: string) {
    this.disk = disk
    this.directory = directory
  }

  get keepsUp(): boolean {
    return this.#operations <= OPERATIONS_MAX
  }

  /**
   * Runs an operation after another one, and when few others run.
   *
   * @param operation gets the id of the lock
   * @throws if there is no directory
   */
  async run<Result>(before: Promise<unknown>, operation: (id: string) => Promise<Result>): Promise<Result> {
    this.#operations += 1
    try {
      await before
      if (this.lock === undefined) throw new Error('the directory cannot be used')
      const { id } = await this.lock
      if (this.#running < OPERATIONS_RUNNING_MAX) this.#running += 1
      else await new Promise<void>((resolve) => this.#waiting.push(resolve))
      try {
        return await operation(id)
      } finally {
        const next = this.#waiting.shift()
        if (next === undefined) this.#running -= 1
        else next()
      }
    } finally {
      this.#operations -= 1
    }
  }

  /**
   * Waits for an operation for a limited time. While one is overdue, others are not waited for.
   *
   * @throws if the operation fails, or does not end in time. It may still end later
   */
  inTime<Result>(operation: Promise<Result>): Promise<Result> {
    const waitMs = this.#overdue > 0 ? 0 : this.isAborted ? CLOSE_MS : DISK_RESPONSE_MS
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#giveUps.delete(giveUp)
        this.#overdue += 1
        reject(new Error(`the disk did not respond${waitMs === 0 ? '' : ` within ${waitMs} ms`}`))
      }
      const timer = startTimer(giveUp, waitMs)
      this.#giveUps.add(giveUp)
      const end = (): void => {
        clearTimeout(timer)
        if (!this.#giveUps.delete(giveUp)) this.#overdue -= 1
      }
      operation.finally(end).then(resolve, reject)
    })
  }

  abort(): void {
    this.isAborted = true
    startTimer(() => {
      for (const giveUp of this.#giveUps) giveUp()
    }, CLOSE_MS)
  }

  report(message: string, cause?: unknown): void {
    if (this.isFailing || this.isAborted) return
    this.isFailing = true
    this.onError?.(message, cause)
  }
}
