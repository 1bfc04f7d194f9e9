import { readFile } from 'node:fs/promises'
import type { SpoolRecord } from '../spool.ts'
import { encodeAttempt, encodeEntries, parseBatchFile } from './batch-file.ts'
import type { Files } from './files.ts'

/** What a record needs of its spool. */
export interface RecordHost {
  readonly files: Files
  readonly wallMs: () => number
  /** Resolves with the folder of the files. */
  readonly folder: Promise<string>
  /** Counts the bytes of a record, which may be negative. */
  readonly count: (bytes: number) => void
  readonly onRemove: (record: DiskRecord) => void
  readonly onWriteError: (error: unknown) => void
}

/** What a file system needs for a file, whatever its size. */
const FILE_BYTES = 4_096

/**
 * The file of one batch.
 *
 * empty → written ⇄ attempted → removed. A file that cannot be written is removed, and the record has failed.
 */
export class DiskRecord implements SpoolRecord {
  readonly #host: RecordHost
  readonly #name: string
  /** Operations run one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  #unwritten: string[] = []
  #isWriteScheduled = false
  #entries = 0
  /** The counted bytes. */
  #bytes = 0
  /** The size of the file without its `attempt`. */
  #fileBytes = 0
  #isAttempted = false
  #isAttemptWanted = false
  #failure: { readonly error: unknown } | undefined

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
    return this.#unwritten.length === 0 && !this.#isWriteScheduled && this.#failure === undefined
  }

  add(json: string, bytes: number): void {
    this.#count(bytes)
    this.#entries += 1
    this.#unwritten.push(json)
    if (this.#isWriteScheduled) return
    this.#isWriteScheduled = true
    // Writes all entries that are added until then. A failure is reported, and stays.
    this.#run((path) => this.#write(path)).catch(() => undefined)
  }

  markAttempt(): Promise<void> {
    // A write that has not begun writes the mark too.
    this.#isAttemptWanted = true
    return this.#run(async (path) => {
      if (this.#failure !== undefined) throw this.#failure.error
      await this.#append(path, [])
    })
  }

  clearAttempt(): Promise<void> {
    this.#isAttemptWanted = false
    return this.#run(async (path) => {
      if (!this.#isAttempted) return
      await this.#orFail(path, this.#host.files.truncate(path, this.#fileBytes))
      this.#isAttempted = false
    })
  }

  read(): Promise<string[]> {
    return this.#run(async (path) => {
      const { entries, isDamaged } = parseBatchFile(await readFile(path))
      if (isDamaged || entries.length !== this.#entries) throw new Error(`${path} is damaged`)
      return [...entries]
    })
  }

  remove(): Promise<void> {
    this.#count(-this.#bytes)
    return this.#run(async (path) => {
      await this.#host.files.remove(path)
      this.#host.onRemove(this)
    })
  }

  async written(): Promise<void> {
    await this.#last
  }

  #run<Result>(operation: (path: string) => Promise<Result>): Promise<Result> {
    const before = this.#last
    const run = async (): Promise<Result> => {
      await before
      return operation(`${await this.#host.folder}/${this.#name}`)
    }
    const running = run()
    this.#last = running.catch(() => undefined)
    return running
  }

  async #write(path: string): Promise<void> {
    this.#isWriteScheduled = false
    const entries = this.#unwritten
    this.#unwritten = []
    if (this.#failure === undefined) await this.#append(path, entries)
  }

  /** Appends entries, and the mark of an attempt if it is wanted. */
  async #append(path: string, entries: readonly string[]): Promise<void> {
    const { files, wallMs } = this.#host
    const part = entries.length === 0 ? Buffer.alloc(0) : encodeEntries(entries)
    const isMarked = this.#isAttemptWanted && !this.#isAttempted && this.#unwritten.length === 0
    const mark = isMarked ? encodeAttempt(wallMs(), this.#entries) : Buffer.alloc(0)
    if (part.length + mark.length === 0) return
    await this.#orFail(path, files.append(path, Buffer.concat([part, mark])))
    this.#fileBytes += part.length
    this.#isAttempted ||= isMarked
  }

  /** After a failure, a part of the file may be missing. The batch must not be sent from it. */
  async #orFail(path: string, operation: Promise<void>): Promise<void> {
    try {
      await operation
    } catch (error) {
      this.#failure = { error }
      this.#host.onWriteError(error)
      await this.#host.files.remove(path)
      throw error
    }
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    this.#host.count(bytes)
  }
}
