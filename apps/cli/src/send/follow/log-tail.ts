import { type FileHandle, open, stat } from 'node:fs/promises'
import { hasNumbersOf, identify, numberOf } from './file-identity.ts'
import { FinishedFiles } from './finished-files.ts'
import { newSegment, type Segment } from './follow-state.ts'
import { OpenLog } from './open-log.ts'
import { isFileOrCopy, isWholeCopy, openRotated, type RotatedFile } from './rotated-files.ts'

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
  readonly monotonicMs: () => number
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
  async *#next(): AsyncGenerator<TailEvent, OpenLog | undefined> {
    const file = await this.#openPath()
    if (file === undefined) return undefined
    yield* this.#readBetween(file)
    if (!this.#options.signal.aborted) return this.#addNew(file)
    await file.close()
    return undefined
  }

  /** Reads the rest of what was read before. @returns the file at the path, if it is one of those */
  async *#readKnown(): AsyncGenerator<TailEvent, OpenLog | undefined> {
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
      if (isCurrent) return new OpenLog(file, segment, segment.offset)
      await file?.close()
      const found = await this.#findRotated(segment, segment.offset)
      if (found === undefined) {
        if (!segment.isEnded)
          note(`${path}: the file that was read before is gone; its last lines may not have been sent`)
        this.#forget(segment)
      } else yield* this.#readToEnd(new OpenLog(found.file, segment, segment.offset))
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

  async #addNew(file: FileHandle): Promise<OpenLog> {
    const { mtimeMs } = await file.stat()
    const segment = newSegment(await identify(file, 0), 0, mtimeMs)
    this.#options.segments.push(segment)
    return new OpenLog(file, segment, 0)
  }

  /** Reads the rotated files that were written later than those that were read, and never seen at the path: the oldest first. */
  async *#readBetween(current: FileHandle): AsyncGenerator<TailEvent> {
    const { path, signal, others } = this.#options
    while (!signal.aborted) {
      const unread = await this.#finished.openUnread(path, current, signal, others)
      if (unread.length === 0) return
      try {
        for (const { file } of unread) {
          if (!signal.aborted) yield* this.#readToEnd(await this.#addNew(file))
        }
      } finally {
        for (const { file } of unread) await file.close()
      }
    }
  }

  async *#readToEnd(opened: OpenLog): AsyncGenerator<TailEvent> {
    yield { kind: 'begin', segment: opened.segment }
    try {
      yield* this.#readWhole(opened)
    } finally {
      await opened.file.close()
    }
    if (!this.#options.signal.aborted) yield { kind: 'end' }
  }

  /** Reads a file that does not grow any more. If it is truncated meanwhile, the rest is read from its copy. */
  async *#readWhole(opened: OpenLog): AsyncGenerator<TailEvent> {
    const isTruncated = yield* this.#readAvailable(opened)
    if (this.#options.signal.aborted) return
    if (isTruncated) yield* this.#readCopy(opened)
    else await this.#finished.add(opened.file)
  }

  /** Reads the rest of a file that was truncated. It has other lines now, so it is not finished itself. */
  async *#readCopy({ segment, position }: OpenLog): AsyncGenerator<TailEvent> {
    const { path, note } = this.#options
    const copy =
      (await this.#findRotated(segment, position)) ??
      (await this.#findRotated(segment, position, isWholeCopy))
    if (copy === undefined) {
      note(
        `${path}: the file was truncated, and no copy of it was found; its lines after byte ${position} may not have been sent`,
      )
      this.#finished.addDeleted(segment.modifiedMs)
      return
    }
    try {
      yield* this.#readWhole(new OpenLog(copy.file, segment, position))
    } finally {
      await copy.file.close()
    }
  }

  async *#readWhileItGrows(opened: OpenLog): AsyncGenerator<TailEvent> {
    const { signal, sleep, monotonicMs } = this.#options
    const { file, segment } = opened
    yield { kind: 'begin', segment }
    /** When the file last grew, or was first seen to be renamed. */
    let quietSinceMs = monotonicMs()
    let isRenamed = false
    let isTruncated = false
    try {
      while (!signal.aborted) {
        const { position } = opened
        isTruncated = yield* this.#readAvailable(opened)
        if (isTruncated) break
        if (opened.position > position) quietSinceMs = monotonicMs()
        if (signal.aborted) return
        yield { kind: 'pause' }
        const wasRenamed = isRenamed
        isRenamed = await this.#isRenamed(segment)
        if (isRenamed && !wasRenamed) quietSinceMs = monotonicMs()
        const isQuiet = isRenamed && monotonicMs() - quietSinceMs >= this.#limits.rotatedQuietMs
        if (isQuiet && !(await this.#mayStillBeWritten(file))) break
        await sleep(this.#limits.pollMs)
      }
      if (signal.aborted) return
      if (isTruncated) yield* this.#readCopy(opened)
      else await this.#finished.add(file)
      if (!signal.aborted) yield { kind: 'end' }
    } finally {
      await file.close()
    }
  }

  /** Reads what the file has. @returns whether it was truncated */
  async *#readAvailable(opened: OpenLog): AsyncGenerator<TailEvent, boolean> {
    while (!this.#options.signal.aborted) {
      const bytes = await opened.readPiece(this.#limits.pieceBytes)
      if (bytes === undefined) return true
      if (bytes.length === 0) return false
      yield { kind: 'bytes', bytes }
    }
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

  async #findRotated(
    { identity }: Segment,
    offset: number,
    isTheFile = isFileOrCopy,
  ): Promise<RotatedFile | undefined> {
    let found: RotatedFile | undefined
    for (const rotated of await openRotated(this.#options.path)) {
      // Files that begin with the same lines look like copies. The file itself is the one.
      const isFound = found?.number === numberOf(identity)
      if (!isFound && (await isTheFile(rotated.file, identity, offset))) {
        await found?.file.close()
        found = rotated
      } else await rotated.file.close()
    }
    return found
  }
}
