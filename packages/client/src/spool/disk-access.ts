import type { Disk, Lock } from './disk.ts'

/** As many as threads in which Node uses the disk. Each has the bytes of one batch in memory. */
const OPERATIONS_RUNNING_MAX = 4
/** Each needs about 1 KB of memory. A disk that works needs a millisecond for each. On a slower one, they are not gathered without end. */
const OPERATIONS_MAX = 16_384

/** The operations of one client in its directory: few at a time. */
export class DiskAccess {
  readonly disk: Disk
  readonly directory: string
  /** Undefined while there is no directory. */
  lock: Promise<Lock> | undefined
  /** The counted bytes of all records. */
  bytes = 0
  /** Gets the first failure after a success. */
  onError: ((message: string, cause: unknown) => void) | undefined
  isFailing = false
  /** Operations that have not ended, and how many of them are running. The others wait. */
  #operations = 0
  #running = 0
  readonly #waiting: (() => void)[] = []

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

  report(message: string, cause?: unknown): void {
    if (this.isFailing) return
    this.isFailing = true
    this.onError?.(message, cause)
  }
}
