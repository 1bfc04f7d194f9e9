import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import {
  type RecoveredRecord,
  type Spool,
  type SpoolEvents,
  type SpoolRecord,
  UnreadableError,
} from '../spool.ts'
import { startTimer, type Timer } from '../timers.ts'
import { parseBatchFile } from './batch-file.ts'
import { DiskRecord, FILE_BYTES, type RecordHost } from './disk-record.ts'
import { diskFiles, type Files } from './files.ts'
import { ProcessFolder } from './process-folder.ts'

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
  readonly files?: Files
  readonly wallMs?: () => number
  readonly intervalMs?: number
}

const MIB = 1024 * 1024
/** Some hours of a busy application. */
const BYTES_MAX = 256 * MIB
/** Room for the largest request. */
const BYTES_MAX_MIN = 8 * MIB
/**
 * The most bytes of files that are being removed. A disk that works needs a millisecond for each. One that hangs would fill the memory with
 * those that it still has to remove: further batches are not in the spool.
 */
const REMOVING_BYTES_MAX = 16 * MIB
/** A process that ends later than this one starts leaves its files until then. A folder that could not be created is tried as often. */
const INTERVAL_MS = 60_000

/** The suffix of a name without a file, for entries that were lost. */
const LOST = '.lost'

/** Keeps entries in files until they are acknowledged. The guarantees are in the README. */
export class DiskSpool implements Spool {
  readonly #directory: string
  readonly #bytesMax: number
  readonly #host: RecordHost
  readonly #records = new Set<DiskRecord>()
  readonly #intervalMs: number
  #folder: ProcessFolder | undefined
  /** The path of the folder. While it cannot be created, this is rejected. */
  #path: Promise<string>
  #resolvePath: (path: Promise<string>) => void = () => undefined
  /** The current creation of the folder, and adoption of files. */
  #running: Promise<void> = Promise.resolve()
  #events: SpoolEvents | undefined
  #timer: Timer | undefined
  #isClosed = false
  #bytes = 0
  #removingBytes = 0
  #created = 0

  constructor(
    { directory, bytesMax = BYTES_MAX, fsync = false }: DiskSpoolOptions,
    { files = diskFiles(fsync), wallMs = Date.now, intervalMs = INTERVAL_MS }: DiskSpoolPlatform = {},
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
    this.#path = new Promise<string>((resolvePath) => {
      this.#resolvePath = resolvePath
    })
    // `#createFolder` reports it. Without a record, nothing else would handle the rejection.
    this.#path.catch(() => undefined)
    this.#host = {
      files,
      wallMs,
      folder: () => this.#path,
      count: (bytes) => {
        this.#bytes += bytes
      },
      countRemoving: (bytes) => {
        this.#removingBytes += bytes
      },
      onRemove: (record) => this.#records.delete(record),
      onWriteError: (error) =>
        this.#events?.onError('cannot be written; entries are kept in memory only', error),
    }
  }

  async open(events: SpoolEvents): Promise<void> {
    if (this.#events !== undefined) throw new Error('a spool belongs to one client')
    this.#events = events
    await this.#start()
  }

  hasRoomFor(bytes: number): boolean {
    return this.#bytes + bytes <= this.#bytesMax
  }

  create(idempotencyKey: string): SpoolRecord | undefined {
    if (this.#removingBytes > REMOVING_BYTES_MAX) {
      this.#events?.onError('does not keep up; entries are kept in memory only', undefined)
      return undefined
    }
    this.#created += 1
    const record = new DiskRecord(this.#host, fileName(this.#host.wallMs(), this.#created, idempotencyKey))
    this.#records.add(record)
    return record
  }

  /** Resolves when all entries that were logged until now are written. */
  async written(): Promise<void> {
    await Promise.all([...this.#records].map((record) => record.written()))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#running
    await this.written()
    await this.#folder?.close()
  }

  /** Now, and in each minute. */
  async #start(): Promise<void> {
    this.#running = this.#createAndAdopt()
    await this.#running
    if (this.#isClosed) return
    this.#timer = startTimer(() => void this.#start(), this.#intervalMs)
  }

  /** A disk that was full, or not mounted, may work now. */
  async #createAndAdopt(): Promise<void> {
    this.#folder ??= await this.#createFolder()
    if (this.#folder === undefined) return
    try {
      await this.#adopt(this.#folder)
    } catch (error) {
      this.#events?.onError('cannot read the files of other processes', error)
    }
  }

  async #createFolder(): Promise<ProcessFolder | undefined> {
    const creating = ProcessFolder.create(this.#directory)
    const path = creating.then((folder) => folder.path)
    this.#resolvePath(path)
    try {
      const folder = await creating
      // Until now, operations of records have failed at once: they do not wait for another attempt.
      this.#path = path
      for (const record of this.#records) record.writeRest()
      return folder
    } catch (error) {
      path.catch(() => undefined)
      this.#events?.onError('cannot be opened; entries are kept in memory only', error)
      return undefined
    }
  }

  /** Takes over the files of processes that have ended, as many as there is room for. */
  async #adopt(folder: ProcessFolder): Promise<void> {
    let bytes = 0
    const isWanted = (name: string, size: number): boolean => {
      if (keyOf(name) === undefined || !this.hasRoomFor(bytes + size + FILE_BYTES)) return false
      bytes += size + FILE_BYTES
      return true
    }
    const names = await folder.adopt(isWanted, (error) =>
      this.#events?.onError('cannot adopt the files of another process', error),
    )
    const recovered: RecoveredRecord[] = []
    for (const name of names) {
      recovered.push(...(await this.#recover(`${folder.path}/${name}`, name)))
    }
    if (recovered.length > 0) this.#events?.onRecovered(recovered)
  }

  async #recover(path: string, name: string): Promise<RecoveredRecord[]> {
    try {
      return await this.#recoverFrom(path, name, await readFile(path))
    } catch (error) {
      // The disk may work when the next process adopts the file.
      this.#events?.onError('has a file that cannot be read; it is left to the next process', error)
      return []
    }
  }

  async #recoverFrom(path: string, name: string, bytes: Buffer): Promise<RecoveredRecord[]> {
    const { attemptedAtMs, entries, lost, isDamaged, readableBytes } = parseBatchFile(bytes)
    const recover = (file: string, count: number): RecoveredRecord => {
      const isAttempted = attemptedAtMs !== undefined
      const parts = { entries: count, bytes: readableBytes, isAttempted }
      const record = DiskRecord.existing(this.#host, file, parts)
      this.#records.add(record)
      return { idempotencyKey: keyOf(name) ?? '', record, entries: count, bytes: bytes.length, attemptedAtMs }
    }
    // Its entries are counted as lost when it is read. If there was an attempt, its body is lost.
    if (lost !== 0 && (attemptedAtMs !== undefined || entries.length === 0))
      return [recover(name, Math.max(lost + entries.length, 1))]
    if (attemptedAtMs === undefined && entries.length === 0) {
      // The process ended before it had written the first part.
      await this.#host.files.remove(path)
      return []
    }
    // Nothing can be appended to a part that was written incompletely.
    if (isDamaged) await this.#host.files.truncate(path, readableBytes)
    if (lost === 0) return [recover(name, entries.length)]
    const error = new UnreadableError(`${name} is damaged`)
    this.#events?.onError(`has a file with damaged parts; at least ${lost} entries are lost`, error)
    // The record of a file that does not exist stands for the lost entries.
    return [recover(name, entries.length), recover(`${name}${LOST}`, lost)]
  }
}

/** Sorted by name, the files are in the order of their creation. */
function fileName(wallMs: number, number: number, idempotencyKey: string): string {
  return `${String(wallMs).padStart(15, '0')}-${String(number).padStart(9, '0')}-${idempotencyKey}.batch`
}

function keyOf(name: string): string | undefined {
  return /^\d+-\d+-([\w-]{1,200})\.batch$/.exec(name)?.[1]
}
