import { type FileHandle, open, stat } from 'node:fs/promises'
import { hasHeadOf, hasNumbersOf, headBytesMax, identify, numberOf } from './file-identity.ts'
import { FinishedFiles } from './finished-files.ts'
import { newSegment, type Segment } from './follow-state.ts'
import { isFileOrCopy, openRotated, type RotatedFile } from './rotated-files.ts'

interface TailLimits {
  readonly pollMs: number
  readonly rotatedQuietMs: number
  readonly pieceBytes: number
}

const tailLimits: TailLimits = {
  /** A user who watches does not notice this delay. A poll costs two system calls. */
  pollMs: 250,
  /** How long a renamed file must be quiet before the new one is read: programs reopen their log a moment after the rotation. */
  rotatedQuietMs: 3_000,
  /** Read at a time. */
  pieceBytes: 64 * 1024,
}

export type TailEvent =
  /** The bytes of a file follow, from the offset of its segment on. */
  | { readonly kind: 'begin'; readonly segment: Segment }
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  /** There are no further bytes at the moment. */
  | { readonly kind: 'pause' }
  /** The file is complete. */
  | { readonly kind: 'end' }

export interface TailOptions {
  readonly path: string
  /** The paths of other logs that are followed. None of them is a rotated file of this one, whatever its name is. */
  readonly others?: ReadonlySet<string>
  /** What was read before, the oldest first. New files are added, and those that cannot be found are removed. */
  readonly segments: Segment[]
  readonly signal: AbortSignal
  readonly nowMs: () => number
  /** Ends early when the signal is aborted. */
  readonly sleep: (ms: number) => Promise<void>
  readonly note: (text: string) => void
  /** `tailLimits` except in tests. */
  readonly limits?: Partial<TailLimits>
}

/** Nothing of the file was read: its copy could not be recognized, so that all later files are read as new ones. */
const isUntouched = ({ identity, offset, ends, isEnded }: Segment): boolean =>
  identity.headBytes === 0 && offset === 0 && ends.length === 0 && !isEnded

/** @throws Error also when it is a directory, which can be opened, and not be read */
async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path)
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new Error('it is not a file')
}

/** A file that is open, and the segment that it is read for. */
interface OpenFile {
  readonly file: FileHandle
  readonly segment: Segment
  /** When the file was last written, the last time that it was seen to begin as before. */
  checkedMs?: number
}

/**
 * Reads a log as it grows, like `tail -F`, and continues where it was left.
 *
 * States: the rest of rotated files (the oldest first) → the file at the path, while it grows → it is renamed or truncated →
 * what came in between → the next file at the path. A file that is renamed is read until it is quiet. Of a file that is
 * truncated, the rest is read from its copy, if there is one.
 */
export class LogTail {
  readonly #options: TailOptions
  readonly #limits: TailLimits
  readonly #finished = new FinishedFiles()
  #position = 0

  constructor(options: TailOptions) {
    this.#options = options
    this.#limits = { ...tailLimits, ...options.limits }
  }

  async *events(): AsyncGenerator<TailEvent> {
    let current = yield* this.#readKnown()
    while (!this.#options.signal.aborted) {
      current ??= yield* this.#next()
      if (current === undefined) return
      yield* this.#readWhileItGrows(current)
      current = undefined
    }
  }

  /**
   * Opens the file at the path, and reads the files in between first. In this order, no rotation in the meantime hides a file: the open
   * one is not lost when it is renamed, and the others are listed again until all were read.
   *
   * @returns undefined when the signal is aborted
   */
  async *#next(): AsyncGenerator<TailEvent, OpenFile | undefined> {
    const file = await this.#openPath()
    if (file === undefined) return undefined
    yield* this.#readBetween(file)
    if (!this.#options.signal.aborted) return this.#begin(file, await this.#add(file))
    await file.close()
    return undefined
  }

  /** Reads the rest of what was read before. @returns the file at the path, if it is one of those */
  async *#readKnown(): AsyncGenerator<TailEvent, OpenFile | undefined> {
    const { path, segments, note } = this.#options
    for (const segment of segments.slice()) {
      if (isUntouched(segment)) {
        this.#forget(segment)
        continue
      }
      const file = await open(path).catch(() => undefined)
      const isCurrent =
        file !== undefined &&
        (await hasNumbersOf(file, segment.identity)) &&
        (await isFileOrCopy(file, segment.identity, segment.offset))
      if (isCurrent) return this.#begin(file, segment)
      await file?.close()
      const found = await this.#findRotated(segment, segment.offset)
      if (found === undefined) {
        if (!segment.isEnded)
          note(`${path}: the file that was read before is gone; its last lines may not have been sent`)
        this.#forget(segment)
      } else yield* this.#readToEnd(this.#begin(found.file, segment))
    }
    return undefined
  }

  /** What was written later is searched as if the file did not exist any more. */
  #forget(segment: Segment): void {
    const { segments } = this.#options
    segments.splice(segments.indexOf(segment), 1)
    this.#finished.addDeleted(segment.modifiedMs)
  }

  /** Waits until there is a file at the path. @returns undefined when the signal is aborted */
  async #openPath(): Promise<FileHandle | undefined> {
    const { path, signal, sleep, note } = this.#options
    let isNoted = false
    while (!signal.aborted) {
      const file = await openFile(path).catch((error: NodeJS.ErrnoException) => {
        if (!isNoted) note(`${path}: waiting for the file (${error.code ?? error.message})`)
        isNoted = true
        return undefined
      })
      if (file !== undefined) return file
      await sleep(this.#limits.pollMs)
    }
    return undefined
  }

  async #add(file: FileHandle): Promise<Segment> {
    const { mtimeMs } = await file.stat()
    const segment = newSegment(await identify(file, 0), 0, mtimeMs)
    this.#options.segments.push(segment)
    return segment
  }

  #begin(file: FileHandle, segment: Segment): OpenFile {
    this.#position = segment.offset
    return { file, segment }
  }

  /** Reads the rotated files that were written later than those that were read, and never seen at the path: the oldest first. */
  async *#readBetween(current: FileHandle): AsyncGenerator<TailEvent> {
    const { path, signal, others } = this.#options
    while (!signal.aborted) {
      const unread = await this.#finished.openUnread(path, current, signal, others)
      if (unread.length === 0) return
      try {
        for (const { file } of unread) {
          if (!signal.aborted) yield* this.#readToEnd(this.#begin(file, await this.#add(file)))
        }
      } finally {
        for (const { file } of unread) await file.close()
      }
    }
  }

  async *#readToEnd(opened: OpenFile): AsyncGenerator<TailEvent> {
    yield { kind: 'begin', segment: opened.segment }
    try {
      yield* this.#readAvailable(opened)
      if (this.#options.signal.aborted) return
      await this.#finished.add(opened.file)
    } finally {
      await opened.file.close()
    }
    yield { kind: 'end' }
  }

  async *#readWhileItGrows(opened: OpenFile): AsyncGenerator<TailEvent> {
    const { signal, sleep, nowMs } = this.#options
    const { file, segment } = opened
    yield { kind: 'begin', segment }
    /** When the file last grew, or was first seen to be renamed. */
    let quietSinceMs = nowMs()
    let isRenamed = false
    let rest: RotatedFile | undefined
    try {
      while (!signal.aborted) {
        if (await this.#isTruncated(opened)) {
          rest = await this.#findRotated(segment, this.#position)
          break
        }
        const position = this.#position
        yield* this.#readAvailable(opened)
        if (this.#position > position) quietSinceMs = nowMs()
        if (signal.aborted) return
        yield { kind: 'pause' }
        const wasRenamed = isRenamed
        isRenamed = await this.#isRenamed(segment)
        if (isRenamed && !wasRenamed) quietSinceMs = nowMs()
        const isQuiet = isRenamed && nowMs() - quietSinceMs >= this.#limits.rotatedQuietMs
        if (isQuiet && !(await this.#mayStillBeWritten(file))) break
        await sleep(this.#limits.pollMs)
      }
      if (signal.aborted) return
      if (rest !== undefined) {
        yield* this.#readAvailable({ file: rest.file, segment })
        await this.#finished.add(rest.file)
      }
      await this.#finished.add(file)
      yield { kind: 'end' }
    } finally {
      await file.close()
      await rest?.file.close()
    }
  }

  async *#readAvailable({ file, segment }: OpenFile): AsyncGenerator<TailEvent> {
    const { signal } = this.#options
    while (!signal.aborted) {
      const { buffer, bytesRead } = await file.read(
        Buffer.allocUnsafe(this.#limits.pieceBytes),
        0,
        this.#limits.pieceBytes,
        this.#position,
      )
      if (bytesRead === 0) {
        segment.modifiedMs = (await file.stat()).mtimeMs
        return
      }
      this.#position += bytesRead
      if (segment.identity.headBytes < headBytesMax) segment.identity = await identify(file, this.#position)
      yield { kind: 'bytes', bytes: buffer.subarray(0, bytesRead) }
    }
  }

  /** Whether the file was emptied, and perhaps filled again: it is shorter, or was written since and begins with other bytes. */
  async #isTruncated(opened: OpenFile): Promise<boolean> {
    // The time comes before the check: what is written after it has another time, and is checked at the next poll.
    const { size, mtimeMs } = await opened.file.stat()
    if (size < this.#position) return true
    const isWritten = size > this.#position || mtimeMs !== opened.checkedMs
    if (isWritten && !(await hasHeadOf(opened.file, opened.segment.identity))) return true
    opened.checkedMs = mtimeMs
    return false
  }

  /** The program has not opened its new log yet if that is empty. A file that was deleted is not kept open for it. */
  async #mayStillBeWritten(file: FileHandle): Promise<boolean> {
    const next = await stat(this.#options.path).catch(() => undefined)
    return next?.size === 0 && (await file.stat()).nlink > 0
  }

  /** Whether there is another file at the path. Without any, the program has not opened the new one yet. */
  async #isRenamed({ identity }: Segment): Promise<boolean> {
    const stats = await stat(this.#options.path, { bigint: true }).catch(() => undefined)
    if (stats === undefined) return false
    return String(stats.ino) !== identity.inode || String(stats.dev) !== identity.device
  }

  async #findRotated({ identity }: Segment, offset: number): Promise<RotatedFile | undefined> {
    let found: RotatedFile | undefined
    for (const rotated of await openRotated(this.#options.path)) {
      // Files that begin with the same lines look like copies. The file itself is the one.
      const isFound = found?.number === numberOf(identity)
      if (!isFound && (await isFileOrCopy(rotated.file, identity, offset))) {
        await found?.file.close()
        found = rotated
      } else await rotated.file.close()
    }
    return found
  }
}
