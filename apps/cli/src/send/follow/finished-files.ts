import type { FileHandle } from 'node:fs/promises'
import { type FileIdentity, hasHeadOf, headBytesMax, identify, numberOf } from './file-identity.ts'
import { isBeginningOf, openRotated, type RotatedFile } from './rotated-files.ts'

/** More rotated files are not kept. */
const FILES_MAX = 1_000

/** A shorter file is not taken for a copy of another one: it may be a new log that has the same first lines. */
const COPY_BYTES_MIN = headBytesMax

/** The files of a log that were read to their end, and with them, the rotated files that were not. */
export class FinishedFiles {
  /** The newest `FILES_MAX`, by number. A later file may have got the number of one that was deleted. */
  readonly #identities = new Map<string, FileIdentity>()
  /** When the newest of them was last written. Undefined if the log was never read before. */
  #modifiedMs: number | undefined

  async add(file: FileHandle): Promise<void> {
    const identity = await identify(file, headBytesMax)
    const number = numberOf(identity)
    this.#identities.delete(number)
    this.#identities.set(number, identity)
    const [oldest] = this.#identities.keys()
    if (this.#identities.size > FILES_MAX && oldest !== undefined) this.#identities.delete(oldest)
    this.addDeleted((await file.stat()).mtimeMs)
  }

  /** Adds a file that does not exist any more, by the time when it was last written. */
  addDeleted(modifiedMs: number): void {
    this.#modifiedMs = Math.max(this.#modifiedMs ?? 0, modifiedMs)
  }

  /**
   * Opens the rotated files that were written later than the finished ones, the oldest first. The caller must close them. Copies
   * that a user made of a finished file are not among them. They are compared byte by byte, so that no other file is taken for a copy.
   *
   * @param current the open file that was at the path. It is not one of them, even if it was rotated meanwhile
   * @param others the paths of other logs, whose names may look like those of rotated files
   */
  async openUnread(
    path: string,
    current: FileHandle,
    signal: AbortSignal,
    others: ReadonlySet<string> = new Set(),
  ): Promise<RotatedFile[]> {
    const currentNumber = numberOf(await identify(current, 0))
    const all = await openWhenStill(path, signal)
    const unread: RotatedFile[] = []
    for (const rotated of all) {
      const isOther = rotated.number === currentNumber || others.has(rotated.path)
      if (!isOther && (await this.#isUnread(rotated, all, signal))) unread.push(rotated)
    }
    for (const rotated of all) if (!unread.includes(rotated)) await rotated.file.close()
    return unread
  }

  async #isUnread(rotated: RotatedFile, all: readonly RotatedFile[], signal: AbortSignal): Promise<boolean> {
    if (this.#modifiedMs === undefined || rotated.modifiedMs < this.#modifiedMs) return false
    if (await this.#isFinished(rotated)) return false
    if ((await rotated.file.stat()).size < COPY_BYTES_MIN) return true
    for (const whole of all) {
      if ((await this.#isFinished(whole)) && (await isBeginningOf(rotated.file, whole.file, signal)))
        return false
    }
    return true
  }

  async #isFinished({ file, number }: RotatedFile): Promise<boolean> {
    const finished = this.#identities.get(number)
    return finished !== undefined && (await hasHeadOf(file, finished))
  }
}

/**
 * Opens the rotated files when none was renamed meanwhile: their names are listed before they are opened, so that a rotation in between
 * could hide one.
 */
async function openWhenStill(path: string, signal: AbortSignal): Promise<RotatedFile[]> {
  let namesBefore: string | undefined
  while (!signal.aborted) {
    const rotated = await openRotated(path)
    const names = JSON.stringify(rotated.map(({ path: name, number }) => [name, number]))
    if (names === namesBefore) return rotated
    namesBefore = names
    for (const { file } of rotated) await file.close()
  }
  return []
}
