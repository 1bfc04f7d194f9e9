import { type FileHandle, open, stat } from 'node:fs/promises'
import { hasHeadOf, hasNumbersOf, headBytesMax, identify } from './file-identity.ts'
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

/** A file that is open, and the segment that it is read for. */
interface OpenFile {
  readonly file: FileHandle
  readonly segment: Segment
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
  /** The files that were read to their end by this process. */
  readonly #finished = new Set<string>()
  #position = 0

  constructor(options: TailOptions) {
    this.#options = options
    this.#limits = { ...tailLimits, ...options.limits }
  }

  async *events(): AsyncGenerator<TailEvent> {
    let current = yield* this.#readKnown()
    while (!this.#options.signal.aborted) {
      current ??= await this.#openPath()
      if (current === undefined) return
      yield* this.#readWhileItGrows(current)
      current = undefined
    }
  }

  /** Reads the rest of what was read before. @returns the file at the path, if it is one of those */
  async *#readKnown(): AsyncGenerator<TailEvent, OpenFile | undefined> {
    const { path, segments, note } = this.#options
    let newestMs: number | undefined
    for (const segment of segments.slice()) {
      const file = await open(path).catch(() => undefined)
      const isCurrent =
        file !== undefined &&
        (await hasNumbersOf(file, segment.identity)) &&
        (await isFileOrCopy(file, segment.identity, segment.offset))
      if (isCurrent) return this.#begin(file, segment)
      await file?.close()
      const found = await this.#findRotated(segment, segment.offset)
      if (found === undefined) {
        note(`${path}: the file that was read before is gone; its last lines may not have been sent`)
        segments.splice(segments.indexOf(segment), 1)
        continue
      }
      newestMs = found.modifiedMs
      yield* this.#readToEnd(this.#begin(found.file, segment))
    }
    if (newestMs !== undefined) yield* this.#readBetween(newestMs)
    return undefined
  }

  /** Waits until there is a file at the path. @returns undefined when the signal is aborted */
  async #openPath(): Promise<OpenFile | undefined> {
    const { path, signal, sleep, note } = this.#options
    let isNoted = false
    while (!signal.aborted) {
      const file = await open(path).catch((error: NodeJS.ErrnoException) => {
        if (!isNoted) note(`${path}: waiting for the file (${error.code ?? error.message})`)
        isNoted = true
        return undefined
      })
      if (file !== undefined) return this.#begin(file, await this.#add(file))
      await sleep(this.#limits.pollMs)
    }
    return undefined
  }

  async #add(file: FileHandle): Promise<Segment> {
    const segment = newSegment(await identify(file, 0), 0)
    this.#options.segments.push(segment)
    return segment
  }

  #begin(file: FileHandle, segment: Segment): OpenFile {
    this.#position = segment.offset
    return { file, segment }
  }

  /** Reads rotated files that were written after a time, and never seen at the path. */
  async *#readBetween(modifiedAfterMs: number): AsyncGenerator<TailEvent> {
    for (const { file, modifiedMs } of await openRotated(this.#options.path)) {
      if (modifiedMs <= modifiedAfterMs || this.#finished.has(await keyOf(file))) {
        await file.close()
        continue
      }
      yield* this.#readToEnd(this.#begin(file, await this.#add(file)))
    }
  }

  async *#readToEnd(opened: OpenFile): AsyncGenerator<TailEvent> {
    yield { kind: 'begin', segment: opened.segment }
    try {
      yield* this.#readAvailable(opened)
      if (this.#options.signal.aborted) return
      this.#finished.add(await keyOf(opened.file))
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
        if (isRenamed && nowMs() - quietSinceMs >= this.#limits.rotatedQuietMs) break
        await sleep(this.#limits.pollMs)
      }
      if (signal.aborted) return
      if (rest !== undefined) yield* this.#readAvailable({ file: rest.file, segment })
      const { mtimeMs } = await file.stat()
      this.#finished.add(await keyOf(file))
      yield { kind: 'end' }
      if (rest === undefined) yield* this.#readBetween(mtimeMs)
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
      if (bytesRead === 0) return
      this.#position += bytesRead
      if (segment.identity.headBytes < headBytesMax) segment.identity = await identify(file, this.#position)
      yield { kind: 'bytes', bytes: buffer.subarray(0, bytesRead) }
    }
  }

  /** Whether the file was emptied, and perhaps filled again: it is shorter, or begins with other bytes. */
  async #isTruncated({ file, segment }: OpenFile): Promise<boolean> {
    const { size } = await file.stat()
    if (size < this.#position) return true
    return size > this.#position && !(await hasHeadOf(file, segment.identity))
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
      if (await isFileOrCopy(rotated.file, identity, offset)) {
        await found?.file.close()
        found = rotated
      } else await rotated.file.close()
    }
    return found
  }
}

/** Distinguishes files that do not grow any more, also from later ones with the same number. */
async function keyOf(file: FileHandle): Promise<string> {
  const { device, inode, headHash } = await identify(file, headBytesMax)
  return `${device}:${inode}:${headHash}`
}
