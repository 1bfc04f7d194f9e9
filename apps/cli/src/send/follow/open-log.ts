import type { FileHandle } from 'node:fs/promises'
import { hasHeadOf, headBytesMax, identify, withHead } from './file-identity.ts'
import type { Segment } from './follow-state.ts'

/**
 * A file that is open, how far it was read, and the segment that it is read for.
 *
 * Between two pieces, and while a piece is read, the file may be truncated and filled again. So a piece counts only if the file is
 * as long as what was read, and begins as before, after the piece was read.
 */
export class OpenLog {
  readonly file: FileHandle
  readonly segment: Segment
  #position: number
  /** When the file was last written, the last time that it was seen to begin as before. */
  #checkedMs: number | undefined

  constructor(file: FileHandle, segment: Segment, position: number) {
    this.file = file
    this.segment = segment
    this.#position = position
  }

  /** Where the next piece begins. Of a file that was truncated, the rest begins here in its copy. */
  get position(): number {
    return this.#position
  }

  /** @returns an empty piece at the end of the file, and undefined if it was truncated */
  async readPiece(bytesMax: number): Promise<Buffer | undefined> {
    const { file, segment } = this
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(bytesMax), 0, bytesMax, this.#position)
    const piece = buffer.subarray(0, bytesRead)
    const end = this.#position + bytesRead
    // The first piece shows how the file began. Later the file tells, and the check below that it is still the same one.
    if (segment.identity.headBytes === 0) segment.identity = withHead(segment.identity, piece)
    const isHeadKnown = segment.identity.headBytes >= Math.min(end, headBytesMax)
    const identity = isHeadKnown ? segment.identity : await identify(file, end)
    if (await this.#isTruncated(end)) return undefined
    segment.identity = identity
    if (bytesRead === 0) segment.modifiedMs = this.#checkedMs ?? segment.modifiedMs
    this.#position = end
    return piece
  }

  /** Whether the file was emptied, and perhaps filled again: it is shorter, or was written since and begins with other bytes. */
  async #isTruncated(end: number): Promise<boolean> {
    // The time comes before the check: what is written after it has another time, and is checked at the next poll.
    const { size, mtimeMs } = await this.file.stat()
    if (size < end) return true
    const isWritten = size > this.#position || mtimeMs !== this.#checkedMs
    if (isWritten && !(await hasHeadOf(this.file, this.segment.identity))) return true
    this.#checkedMs = mtimeMs
    return false
  }
}
