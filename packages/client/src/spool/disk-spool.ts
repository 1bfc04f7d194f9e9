import { join, resolve } from 'node:path'
import { startTimer, type Timer } from '../platform.ts'
import type { RecoveredRecord, Spool, SpoolEvents, SpoolRecord } from '../spool.ts'
import { type FileName, formatFileName, parseFile, parseFileName } from './batch-file.ts'
import { type Disk, isMissing, systemDisk } from './disk.ts'
import { DiskAccess } from './disk-access.ts'
import { DiskRecord, FILE_BYTES } from './disk-record.ts'

export interface DiskSpoolOptions {
  /** For the clients of one project on one machine. It is created if it does not exist. */
  readonly directory: string
  /** The most bytes of this client. Default: 256 MiB. */
  readonly bytesMax?: number | undefined
  /** Whether entries survive a power cut, not only the end of the process. Default: false. */
  readonly fsync?: boolean | undefined
}

const MIB = 1024 * 1024
/** Some hours of a busy application. */
const BYTES_MAX = 256 * MIB
/** Room for the largest request. */
const BYTES_MAX_MIN = 8 * MIB
/** A process that ends later than this one starts leaves its files until then. A directory that could not be created is tried as often. */
const INTERVAL_MS = 60_000

/** Keeps entries in files until they are acknowledged. The guarantees are in the README. */
export class DiskSpool implements Spool {
  readonly #bytesMax: number
  readonly #access: DiskAccess
  readonly #records = new Set<DiskRecord>()
  #events: SpoolEvents | undefined
  #adopting: Promise<void> = Promise.resolve()
  #timer: Timer | undefined
  #isClosed = false
  #created = 0
  /** The holders of the files that could not be adopted, as they were reported. */
  readonly #notAdopted = new Set<string>()

  /** @param disk another one for tests */
  constructor(
    { directory, bytesMax = BYTES_MAX, fsync = false }: DiskSpoolOptions,
    disk: Disk = systemDisk(fsync),
  ) {
    // An empty path would be the current folder of the process.
    if (typeof directory !== 'string' || directory === '' || directory.includes('\0'))
      throw new TypeError('`directory` must be the path of a folder')
    if (typeof fsync !== 'boolean') throw new TypeError('`fsync` must be true or false')
    if (!Number.isInteger(bytesMax) || bytesMax < BYTES_MAX_MIN)
      throw new TypeError(`\`bytesMax\` must be an integer of at least ${BYTES_MAX_MIN}`)
    this.#bytesMax = bytesMax
    this.#access = new DiskAccess(disk, resolve(directory))
  }

  open(events: SpoolEvents): void {
    if (this.#events !== undefined) throw new Error('a spool belongs to one client')
    this.#events = events
    this.#access.onError = events.onError
    void this.#start()
  }

  hasRoomFor(bytes: number): boolean {
    return this.#access.bytes + bytes <= this.#bytesMax
  }

  create(idempotencyKey: string): SpoolRecord | undefined {
    if (!this.#access.keepsUp) {
      this.#access.report('does not keep up; entries are kept in memory only')
      return undefined
    }
    this.#created += 1
    const time = String(Date.now()).padStart(15, '0')
    const order = `${time}-${String(this.#created).padStart(9, '0')}`
    return new DiskRecord(this.#access, this.#records, { order, idempotencyKey, attempt: undefined })
  }

  /** Resolves when all entries that were logged until now are written. */
  async written(): Promise<void> {
    await Promise.all([...this.#records].map((record) => record.last))
  }

  abort(): void {
    this.#access.abort()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#access.inTime(this.#leave()).catch(() => undefined)
  }

  async #leave(): Promise<void> {
    await this.#adopting
    await this.written()
    await (await this.#access.lock)?.release()
  }

  /** Now, and in each minute. A disk that was full, or not mounted, may work then. */
  async #start(): Promise<void> {
    this.#adopting = this.#lockAndAdopt()
    await this.#adopting
    if (!this.#isClosed) this.#timer = startTimer(() => void this.#start(), INTERVAL_MS)
  }

  async #lockAndAdopt(): Promise<void> {
    const access = this.#access
    try {
      if (access.lock === undefined) {
        access.lock = access.disk.lock(access.directory)
        await access.lock
        for (const record of this.#records) record.writeRest()
      }
    } catch (error) {
      access.lock = undefined
      return access.report('cannot be opened; entries are kept in memory only', error)
    }
    try {
      await this.#adopt((await access.lock).id)
    } catch (error) {
      access.report('cannot read the files of other processes', error)
    }
  }

  /** Takes over the files of processes that have ended, oldest first, as many as there is room for. */
  async #adopt(ownId: string): Promise<void> {
    const { disk, directory } = this.#access
    const names = await disk.list(directory)
    const ids = new Set(names.flatMap((name) => /^([0-9a-f]{8})\..*(?:batch|lock)$/.exec(name)?.[1] ?? []))
    const abandoned = new Set<string>()
    for (const id of ids) if (id !== ownId && (await disk.isAbandoned(directory, id))) abandoned.add(id)
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
    if (recovered.length > 0) this.#events?.onRecovered(recovered)
    for (const id of abandoned) await disk.remove(join(directory, `${id}.lock`))
  }

  /** Moves a file to this client, if there is room. If several processes do this at the same time, one of them gets it. */
  async #recover(file: FileName, id: string): Promise<RecoveredRecord[]> {
    const { disk, directory } = this.#access
    const path = join(directory, formatFileName(file))
    if (!this.hasRoomFor((await disk.size(path)) + FILE_BYTES)) return []
    const content = parseFile(await disk.read(path))
    const ownPath = join(directory, formatFileName({ ...file, id }))
    await disk.rename(path, ownPath)
    const { attempt, idempotencyKey } = file
    const entries = content.entries.length
    // If there was an attempt, its body is lost with any of its entries.
    const isUsable = entries > 0 && (attempt === undefined || attempt.entries === entries)
    const lost = attempt === undefined ? content.lost : isUsable ? 0 : attempt.entries
    if (lost > 0) {
      this.#events?.onError(`has a damaged file; at least ${lost} entries are lost`, new Error(path))
      this.#events?.onLost(lost)
    }
    if (!isUsable) {
      await disk.remove(ownPath)
      return []
    }
    const { bytes } = content
    const record = new DiskRecord(this.#access, this.#records, file, { entries, bytes })
    return [{ idempotencyKey, record, entries, bytes, attemptedAtMs: attempt?.wallMs }]
  }
}
