import { readFile } from 'node:fs/promises'
import { type SpoolRecord, UnreadableError } from '../spool.ts'
import { encodeAttempt, encodeEntries, parseBatchFile } from './batch-file.ts'
import { type Files, hasCode } from './files.ts'

/** What a record needs of its spool. */
export interface RecordHost {
  readonly files: Files
  readonly wallMs: () => number
  /** Resolves with the folder of the files, or rejects while there is none. */
  readonly folder: () => Promise<string>
  /** Counts the bytes of a record, which may be negative. */
  readonly count: (bytes: number) => void
  /** Counts the bytes of records that the disk has to remove, which may be negative. */
  readonly countRemoving: (bytes: number) => void
  /** Called when the removal has ended, also if it failed. */
  readonly onRemove: (record: DiskRecord) => void
  readonly onWriteError: (error: unknown) => void
}

/** What a file system needs for a file, whatever its size. */
export const FILE_BYTES = 4_096
/** What a record without a file needs in memory until it is removed. */
const RECORD_BYTES = 1_024

/**
 * The file of one batch.
 *
 * empty → written ⇄ attempted → removed. What could not be written stays in memory, and is written with the next mark at the latest. A file is
 * only removed by `remove`: what a failure leaves behind is cut off.
 */
export class DiskRecord implements SpoolRecord {
  readonly #host: RecordHost
  readonly #name: string
  /** Operations run one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  /** What is not in the file, also while it is being appended. */
  readonly #unwritten: string[] = []
  #isWriteScheduled = false
  #entries = 0
  /** The counted bytes. */
  #bytes = 0
  /** The size of the file without its `attempt`. */
  #fileBytes = 0
  #isAttempted = false
  /** When the first attempt was made whose mark is wanted. A mark may be written only at a later one. */
  #attemptedAtMs: number | undefined
  /** Whether the last append failed, or there is no folder. */
  #hasFailed = false
  /** Whether there may be bytes at the end of the file that are not part of it. */
  #hasRemnant = false

  constructor(host: RecordHost, name: string) {
    this.#host = host
    this.#name = name
    this.#count(FILE_BYTES)
  }

  /** A record whose file exists. */
  static existing(
    host: RecordHost,
    name: string,
    file: { readonly entries: number; readonly bytes: number; readonly isAttempted: boolean },
  ): DiskRecord {
    const record = new DiskRecord(host, name)
    record.#entries = file.entries
    record.#fileBytes = file.bytes
    record.#isAttempted = file.isAttempted
    record.#count(file.bytes)
    return record
  }

  get isWritten(): boolean {
    return this.#unwritten.length === 0
  }

  add(json: string, bytes: number): void {
    this.#count(bytes)
    this.#entries += 1
    this.#unwritten.push(json)
    // A disk that is full is not asked again for each entry.
    if (this.#isWriteScheduled || this.#hasFailed) return
    this.#isWriteScheduled = true
    // Writes all entries that are added until then.
    this.#startWrite()
  }

  /** Writes what could not be written while there was no folder. */
  writeRest(): void {
    if (this.#hasFailed && !this.isWritten) this.#startWrite()
  }

  #startWrite(): void {
    this.#run((path) => this.#write(path)).catch((error: unknown) => {
      this.#isWriteScheduled = false
      this.#hasFailed = true
      this.#host.onWriteError(error)
    })
  }

  markAttempt(): Promise<void> {
    // A write that has not begun writes the mark too.
    this.#attemptedAtMs ??= this.#host.wallMs()
    return this.#run((path) => this.#append(path))
  }

  clearAttempt(): Promise<void> {
    this.#attemptedAtMs = undefined
    return this.#run(async (path) => {
      if (!this.#isAttempted) return
      await this.#host.files.truncate(path, this.#fileBytes)
      this.#isAttempted = false
    })
  }

  read(): Promise<string[]> {
    return this.#run(async (path) => {
      const { entries, isDamaged } = parseBatchFile(await readFile(path).catch(throwMissing))
      if (isDamaged || entries.length !== this.#entries) throw new UnreadableError(`${path} is damaged`)
      return [...entries]
    })
  }

  remove(): Promise<void> {
    const removingBytes = this.#mayHaveFile ? this.#bytes : RECORD_BYTES
    this.#count(-this.#bytes)
    this.#host.countRemoving(removingBytes)
    // What the disk has not begun to write needs no memory any more.
    this.#unwritten.length = 0
    this.#attemptedAtMs = undefined
    const removed = this.#run((path) => this.#host.files.remove(path))
    // Also of a file that cannot be removed: the record is not used again.
    return removed.finally(() => {
      this.#host.countRemoving(-removingBytes)
      this.#host.onRemove(this)
    })
  }

  async written(): Promise<void> {
    await this.#last
  }

  get #mayHaveFile(): boolean {
    return this.#fileBytes > 0 || this.#hasRemnant
  }

  #run<Result>(operation: (path: string) => Promise<Result>): Promise<Result> {
    const before = this.#last
    const run = async (): Promise<Result> => {
      await before
      return operation(`${await this.#host.folder()}/${this.#name}`)
    }
    const running = run()
    this.#last = running.catch(() => undefined)
    return running
  }

  async #write(path: string): Promise<void> {
    this.#isWriteScheduled = false
    await this.#append(path)
  }

  /** Appends the entries that are not written, and the mark of an attempt if it is wanted. */
  async #append(path: string): Promise<void> {
    const { files } = this.#host
    const count = this.#unwritten.length
    const part = count === 0 ? Buffer.alloc(0) : encodeEntries(this.#unwritten)
    const markedAtMs = this.#isAttempted ? undefined : this.#attemptedAtMs
    const mark = markedAtMs === undefined ? Buffer.alloc(0) : encodeAttempt(markedAtMs, this.#entries)
    if (part.length + mark.length === 0) return
    try {
      // Nothing may follow what a failure left behind.
      if (this.#hasRemnant) await this.#cutRemnant(path)
      this.#hasRemnant = true
      await files.append(path, Buffer.concat([part, mark]))
      this.#hasRemnant = false
    } catch (error) {
      this.#hasFailed = true
      // If this fails too, the next append tries it again. Until then, the checksums tell the remnant from the complete parts.
      await this.#cutRemnant(path).catch(() => undefined)
      throw error
    }
    this.#hasFailed = false
    this.#unwritten.splice(0, count)
    this.#fileBytes += part.length
    this.#isAttempted ||= markedAtMs !== undefined
  }

  async #cutRemnant(path: string): Promise<void> {
    const { files } = this.#host
    await (this.#fileBytes === 0 ? files.remove(path) : files.truncate(path, this.#fileBytes))
    this.#hasRemnant = false
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    this.#host.count(bytes)
  }
}

/** Another program has deleted the file. */
function throwMissing(error: unknown): never {
  throw hasCode(error, 'ENOENT') ? new UnreadableError('the file was deleted', { cause: error }) : error
}
