import { join } from 'node:path'
import { utf8Bytes } from '../encode.ts'
import type { QueuedEntry } from '../entry.ts'
import type { SpoolRecord } from '../spool.ts'
import { encodeLine, type FileName, formatFileName, parseFile } from './batch-file.ts'
import { ignoreMissing } from './disk.ts'
import type { DiskAccess } from './disk-access.ts'

/** What a file system needs for a file, whatever its size. */
export const FILE_BYTES = 4_096

type Operation<Result> = (path: string, id: string) => Promise<Result>

const CANNOT_BE_WRITTEN = 'cannot be written; entries are kept in memory only'

/**
 * The file of one batch.
 *
 *              write        rename, before an attempt
 *     no file ──────▶ written ⇄ marked ───▶ removed
 *
 * What could not be written stays in memory, and is written with the next mark at the latest, in the place of what the failure left behind: the
 * line is not shorter then.
 */
export class DiskRecord implements SpoolRecord {
  readonly #access: DiskAccess
  /** The records of the spool, including this one until it is removed. */
  readonly #records: Set<DiskRecord>
  /** Its `attempt` is the mark that the file has. */
  #name: Omit<FileName, 'id'>
  /** When the first attempt was made whose mark is wanted. A mark may be written only at a later one. */
  #attemptedAtMs: number | undefined
  /** The last operation. They run one after the other. */
  last: Promise<unknown> = Promise.resolve()
  /** What is not in the file, also while it is being written. */
  readonly #unwritten: string[] = []
  /** The next write: it waits for its turn, or none is started before an attempt, since the last one failed. */
  #writing: 'none' | 'waits' | 'failed' = 'none'
  #entries: number
  #bytes = 0
  /** The size of the file, without what a failed write left behind. */
  #fileBytes: number

  /** @param file that exists already */
  constructor(
    access: DiskAccess,
    records: Set<DiskRecord>,
    name: Omit<FileName, 'id'>,
    file: { readonly entries: number; readonly bytes: number } = { entries: 0, bytes: 0 },
  ) {
    this.#access = access
    this.#records = records.add(this)
    this.#name = name
    this.#entries = file.entries
    this.#fileBytes = file.bytes
    this.#count(FILE_BYTES + file.bytes)
  }

  get isWritten(): boolean {
    return this.#unwritten.length === 0
  }

  add(json: string, bytes: number): void {
    this.#count(bytes)
    this.#entries += 1
    this.#unwritten.push(json)
    // A disk that is full is not asked again for each entry.
    if (this.#writing === 'none') this.#startWrite()
  }

  /** Writes what could not be written while there was no directory. */
  writeRest(): void {
    if (this.#writing === 'failed' && !this.isWritten) this.#startWrite()
  }

  async written(): Promise<void> {
    await this.#access.inTime(this.last).catch(this.#reporter('cannot be written'))
  }

  async load(): Promise<QueuedEntry[] | 'lost' | 'unreadable'> {
    try {
      const file = await this.#runInTime((path) => this.#access.disk.read(path).catch(ignoreMissing))
      const { entries } = parseFile(file ?? Buffer.alloc(0))
      if (entries.length === this.#entries)
        return entries.map((json) => ({ json, bytes: utf8Bytes(json), tag: undefined }))
      this.#access.report(`cannot be read; ${this.#entries} entries are lost`)
      return 'lost'
    } catch (error) {
      this.#access.report('cannot be read', error)
      return 'unreadable'
    }
  }

  async markAttempt(): Promise<boolean> {
    this.#attemptedAtMs ??= Date.now()
    try {
      await this.#runInTime(async (path, id) => {
        await this.#write(path)
        await this.#mark(path, id)
      })
      this.#access.isFailing = false
      return true
    } catch (error) {
      this.#access.report(CANNOT_BE_WRITTEN, error)
      // After an abort, there is no attempt.
      if (this.isWritten || this.#access.isAborted) return true
      await this.#access.inTime(this.remove()).catch(() => undefined)
      return false
    }
  }

  async clearAttempt(): Promise<void> {
    this.#attemptedAtMs = undefined
    await this.#runInTime((path, id) => this.#mark(path, id)).catch(this.#reporter('cannot be written'))
  }

  async remove(): Promise<void> {
    this.#count(-this.#bytes)
    // What the disk has not begun to write needs no memory any more.
    this.#unwritten.length = 0
    this.#attemptedAtMs = undefined
    await this.#run((path) => this.#access.disk.remove(path)).catch(this.#reporter('cannot remove a file'))
    // Also if its file cannot be removed: it is not used again.
    this.#records.delete(this)
  }

  #startWrite(): void {
    this.#writing = 'waits'
    const written = this.#run((path) => {
      // Writes all entries that were added until now.
      this.#writing = 'none'
      return this.#write(path)
    })
    written.catch((error: unknown) => {
      this.#writing = 'failed'
      this.#access.report(CANNOT_BE_WRITTEN, error)
    })
  }

  #runInTime<Result>(operation: Operation<Result>): Promise<Result> {
    return this.#access.inTime(this.#run(operation))
  }

  #run<Result>(operation: Operation<Result>): Promise<Result> {
    const running = this.#access.run(this.last, (id) => operation(this.#pathOf(id), id))
    this.last = running.catch(() => undefined)
    return running
  }

  #pathOf(id: string, name = this.#name): string {
    return join(this.#access.directory, formatFileName({ ...name, id }))
  }

  /** Gives the file the mark that is wanted: none, or the first one that it got. */
  async #mark(path: string, id: string): Promise<void> {
    const wallMs = this.#attemptedAtMs
    if ((this.#name.attempt === undefined) === (wallMs === undefined)) return
    const attempt = wallMs === undefined ? undefined : { wallMs, entries: this.#entries }
    const name = { ...this.#name, attempt }
    await this.#access.disk.rename(path, this.#pathOf(id, name))
    this.#name = name
  }

  async #write(path: string): Promise<void> {
    const count = this.#unwritten.length
    if (count === 0) return
    const line = encodeLine(this.#unwritten)
    await this.#access.disk.write(path, line, this.#fileBytes)
    if (this.#writing === 'failed') this.#writing = 'none'
    this.#unwritten.splice(0, count)
    this.#fileBytes += line.length
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    this.#access.bytes += bytes
  }

  #reporter(message: string): (error: unknown) => void {
    return (error) => this.#access.report(message, error)
  }
}
