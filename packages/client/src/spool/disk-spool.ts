import { join, resolve } from 'node:path'
import { startTimer, type Timer } from '../platform.ts'
import type { RecoveredRecord, Spool, SpoolEvents, SpoolRecord } from '../spool.ts'
import { type FileName, formatFileName, parseFile, parseFileName } from './batch-file.ts'
import { type Disk, isMissing, type Lock, systemDisk } from './disk.ts'
import { DiskRecord, FILE_BYTES, type RecordHost } from './disk-record.ts'

export interface DiskSpoolOptions {
  /** For the clients of one project on one machine. It is created if it does not exist. */
  readonly directory: string
  /** The most bytes of this client. Default: 256 MiB. */
  readonly bytesMax?: number | undefined
  /** Whether entries survive a power cut, not only the end of the process. Default: false. */
  readonly fsync?: boolean | undefined
}

/** What tests replace. */
export interface DiskSpoolPlatform {
  readonly disk?: Disk
  readonly wallMs?: () => number
  readonly intervalMs?: number
}

const MIB = 1024 * 1024
/** Some hours of a busy application. */
const BYTES_MAX = 256 * MIB
/** Room for the largest request. */
const BYTES_MAX_MIN = 8 * MIB
/** As many as threads in which Node uses the disk. Each has the bytes of one batch in memory. */
const OPERATIONS_RUNNING_MAX = 4
/** Each needs about 1 KB of memory. A disk that works needs a millisecond for each. For one that hangs, they are not gathered without end. */
const OPERATIONS_MAX = 16_384
/** A process that ends later than this one starts leaves its files until then. A directory that could not be created is tried as often. */
const INTERVAL_MS = 60_000
/** How long a request waits for the disk. A disk that is busy, or wakes up, takes a second or two. One that hangs must not stop all sending. */
const DISK_RESPONSE_MS = 5_000
/** How long a disk is waited for after the end of a close. Usually, a write takes a millisecond. */
const CLOSE_MS = 500

/** Keeps entries in files until they are acknowledged. The guarantees are in the README. */
export class DiskSpool implements Spool {
  readonly #directory: string
  readonly #bytesMax: number
  readonly #intervalMs: number
  readonly #host: RecordHost
  readonly #records = new Set<DiskRecord>()
  #events: SpoolEvents | undefined
  /** Undefined while there is no directory. */
  #lock: Promise<Lock> | undefined
  /** The current adoption of files. */
  #adopting: Promise<void> = Promise.resolve()
  #timer: Timer | undefined
  #isClosed = false
  #bytes = 0
  #created = 0
  /** Operations of the disk that have not ended, and those of them that wait for others. */
  #operations = 0
  #running = 0
  readonly #waiting: (() => void)[] = []
  /** Operations that have not ended in time, and may still end. */
  #overdue = 0
  /** End the waits for operations. */
  readonly #giveUps = new Set<() => void>()
  #isAborted = false
  #endClose: () => void = () => undefined
  /** Whether the last failure was reported, and nothing has succeeded since. */
  #isFailing = false
  /** The holders of the files that could not be adopted, as they were reported. */
  readonly #notAdopted = new Set<string>()

  constructor(
    { directory, bytesMax = BYTES_MAX, fsync = false }: DiskSpoolOptions,
    { disk = systemDisk(fsync), wallMs = Date.now, intervalMs = INTERVAL_MS }: DiskSpoolPlatform = {},
  ) {
    // An empty path would be the current folder of the process.
    if (typeof directory !== 'string' || directory === '' || directory.includes('\0'))
      throw new TypeError('`directory` must be the path of a folder')
    if (typeof fsync !== 'boolean') throw new TypeError('`fsync` must be true or false')
    if (!Number.isInteger(bytesMax) || bytesMax < BYTES_MAX_MIN)
      throw new TypeError(`\`bytesMax\` must be an integer of at least ${BYTES_MAX_MIN}`)
    this.#directory = resolve(directory)
    this.#bytesMax = bytesMax
    this.#intervalMs = intervalMs
    this.#host = {
      disk,
      wallMs,
      run: (before, operation) => this.#run(before, operation),
      inTime: (operation) => this.#inTime(operation),
      closeEnd: new Promise((resolveEnd) => {
        this.#endClose = resolveEnd
      }),
      isAborted: () => this.#isAborted,
      onSuccess: () => {
        this.#isFailing = false
      },
      onError: (message, cause) => this.#report(message, cause),
      count: (bytes) => {
        this.#bytes += bytes
      },
      onRemoved: (record) => this.#records.delete(record),
    }
  }

  open(events: SpoolEvents): void {
    if (this.#events !== undefined) throw new Error('a spool belongs to one client')
    this.#events = events
    void this.#start()
  }

  hasRoomFor(bytes: number): boolean {
    return this.#bytes + bytes <= this.#bytesMax
  }

  create(idempotencyKey: string): SpoolRecord | undefined {
    if (this.#operations > OPERATIONS_MAX) {
      this.#report('does not keep up; entries are kept in memory only', undefined)
      return undefined
    }
    this.#created += 1
    const time = String(this.#host.wallMs()).padStart(15, '0')
    const order = `${time}-${String(this.#created).padStart(9, '0')}`
    return this.#add(new DiskRecord(this.#host, { order, idempotencyKey, attempt: undefined }))
  }

  /** Resolves when all entries that were logged until now are written. */
  async written(): Promise<void> {
    await Promise.all([...this.#records].map((record) => record.settled()))
  }

  abort(): void {
    this.#isAborted = true
    for (const giveUp of this.#giveUps) giveUp()
    startTimer(this.#endClose, CLOSE_MS)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const close = async (): Promise<void> => {
      await this.#adopting
      await this.written()
      await (await this.#lock)?.release()
    }
    await Promise.race([close().catch(() => undefined), this.#host.closeEnd])
  }

  #add(record: DiskRecord): DiskRecord {
    this.#records.add(record)
    return record
  }

  /** Now, and in each minute. A disk that was full, or not mounted, may work then. */
  async #start(): Promise<void> {
    this.#adopting = this.#lockAndAdopt()
    await this.#adopting
    if (!this.#isClosed) this.#timer = startTimer(() => void this.#start(), this.#intervalMs)
  }

  async #lockAndAdopt(): Promise<void> {
    try {
      if (this.#lock === undefined) {
        this.#lock = this.#host.disk.lock(this.#directory)
        await this.#lock
        for (const record of this.#records) record.writeRest()
      }
    } catch (error) {
      this.#lock = undefined
      return this.#report('cannot be opened; entries are kept in memory only', error)
    }
    try {
      await this.#adopt((await this.#lock).id)
    } catch (error) {
      this.#report('cannot read the files of other processes', error)
    }
  }

  /** Takes over the files of processes that have ended, oldest first, as many as there is room for. */
  async #adopt(ownId: string): Promise<void> {
    const { disk } = this.#host
    const names = await disk.list(this.#directory)
    const abandoned = new Set<string>()
    for (const id of new Set(
      names.flatMap((name) => /^([0-9a-f]{8})\..*(?:batch|lock)$/.exec(name)?.[1] ?? []),
    )) {
      if (id !== ownId && (await disk.isAbandoned(this.#directory, id))) abandoned.add(id)
    }
    const files = names.flatMap((name) => parseFileName(name) ?? []).filter(({ id }) => abandoned.has(id))
    const recovered: RecoveredRecord[] = []
    for (const file of files.toSorted((a, b) => (a.order < b.order ? -1 : 1))) {
      try {
        recovered.push(...(await this.#recover(file, ownId)))
      } catch (error) {
        // Of another user, for example. Or another process was faster.
        if (isMissing(error) || this.#notAdopted.has(file.id)) continue
        this.#notAdopted.add(file.id)
        this.#events?.onError(`cannot adopt a file: ${formatFileName(file)}`, error)
      }
    }
    for (const id of abandoned) await disk.remove(join(this.#directory, `${id}.lock`))
    if (recovered.length > 0) this.#events?.onRecovered(recovered)
  }

  /** Moves a file to this client, if there is room. If several processes do this at the same time, one of them gets it. */
  async #recover(file: FileName, id: string): Promise<RecoveredRecord[]> {
    const { disk } = this.#host
    const path = join(this.#directory, formatFileName(file))
    if (!this.hasRoomFor((await disk.size(path)) + FILE_BYTES)) return []
    const content = parseFile(await disk.read(path))
    const ownPath = join(this.#directory, formatFileName({ ...file, id }))
    await disk.rename(path, ownPath)
    const { attempt, idempotencyKey } = file
    // If there was an attempt, its body is lost with any of its entries.
    const isUsable =
      content.entries.length > 0 && (attempt?.entries ?? content.entries.length) === content.entries.length
    const lost = isUsable ? (attempt === undefined ? content.lost : 0) : (attempt?.entries ?? content.lost)
    if (lost > 0) {
      this.#events?.onError(`has a damaged file; at least ${lost} entries are lost`, new Error(path))
      this.#events?.onLost(lost)
    }
    if (!isUsable) {
      await disk.remove(ownPath)
      return []
    }
    const entries = content.entries.length
    const record = this.#add(new DiskRecord(this.#host, file, { entries, bytes: content.bytes }))
    return [{ idempotencyKey, record, entries, bytes: content.bytes, attemptedAtMs: attempt?.wallMs }]
  }

  async #run<Result>(
    before: Promise<unknown>,
    operation: (directory: string, id: string) => Promise<Result>,
  ): Promise<Result> {
    this.#operations += 1
    try {
      await before
      if (this.#lock === undefined) throw new Error('the directory cannot be used')
      const { id } = await this.#lock
      if (this.#running < OPERATIONS_RUNNING_MAX) this.#running += 1
      else await new Promise<void>((resolveTurn) => this.#waiting.push(resolveTurn))
      try {
        return await operation(this.#directory, id)
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
   * Waits for an operation of the disk, for a limited time. While one is overdue, others are not waited for.
   *
   * @throws if the operation fails, or does not end in time. It may still end later
   */
  #inTime<Result>(operation: Promise<Result>): Promise<Result> {
    const waitMs = this.#overdue > 0 || this.#isAborted ? 0 : DISK_RESPONSE_MS
    return new Promise((resolveResult, reject) => {
      const giveUp = (): void => {
        end()
        this.#overdue += 1
        const endOverdue = (): void => void (this.#overdue -= 1)
        operation.then(endOverdue, endOverdue)
        const detail = waitMs === 0 ? 'does not answer' : `did not answer within ${waitMs} ms`
        reject(new Error(`the disk ${detail}`))
      }
      const timer = startTimer(giveUp, waitMs)
      const end = (): void => {
        clearTimeout(timer)
        this.#giveUps.delete(giveUp)
      }
      this.#giveUps.add(giveUp)
      operation.then(
        (result) => {
          end()
          resolveResult(result)
        },
        (error: unknown) => {
          end()
          reject(error as Error)
        },
      )
    })
  }

  #report(message: string, cause: unknown): void {
    if (this.#isFailing || this.#isAborted) return
    this.#isFailing = true
    this.#events?.onError(message, cause)
  }
}
