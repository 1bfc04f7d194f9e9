import { createHash } from 'node:crypto'

/*
 * A file has the entries of one batch, as text:
 *
 *   entries <number> <bytes> <checksum>
 *   {"level":"info","message":"first",…}
 *   {"level":"info","message":"second",…}
 *   entries …
 *   attempt <time> <number of all entries> <checksum>
 *
 * The first line of a part tells its size, so a part that was written incompletely is recognised. Only complete parts are read. A batch is
 * complete before its first attempt: parts in front of `attempt` are never missing, unless the disk lost them.
 */

/** What could be read of a file. */
export interface BatchFile {
  readonly entries: readonly string[]
  /** The time of day of the first attempt that may have succeeded. */
  readonly attemptedAtMs: number | undefined
  /** Whether something could not be read after these entries, or the entries are not all that were sent. */
  readonly isDamaged: boolean
  /** How many entries are in damaged parts, at least. The end of a file may be missing, and is not counted: it was not written completely. */
  readonly lost: number
  /** The size of the parts with entries that could be read. */
  readonly readableBytes: number
}

export function encodeEntries(entries: readonly string[]): Buffer {
  const payload = Buffer.from(entries.map((json) => `${json}\n`).join(''))
  const head = `entries ${entries.length} ${payload.length} ${checksum(payload)}\n`
  return Buffer.concat([Buffer.from(head), payload])
}

/** @param wallMs the time of day */
export function encodeAttempt(wallMs: number, entries: number): Buffer {
  const text = `attempt ${Math.round(wallMs)} ${entries}`
  return Buffer.from(`${text} ${checksum(Buffer.from(text))}\n`)
}

export function parseBatchFile(bytes: Buffer): BatchFile {
  const entries: string[] = []
  let [offset, readableBytes, lost, skipped] = [0, 0, 0, 0]
  while (offset < bytes.length) {
    const end = bytes.indexOf('\n', offset)
    const head = end === -1 ? '' : bytes.toString('latin1', offset, end)
    const attempt = parseAttempt(head)
    if (attempt !== undefined) {
      lost = attempt.entries - entries.length
      return { entries, attemptedAtMs: attempt.wallMs, isDamaged: lost !== 0, lost, readableBytes: offset }
    }
    const part = parseEntries(head, bytes.subarray(end + 1))
    if (part?.entries !== undefined) {
      entries.push(...part.entries)
      // What was skipped before was damaged. At the end, it is missing.
      lost += skipped
      skipped = 0
      offset = end + 1 + part.bytes
      readableBytes = offset
    } else {
      if (part?.isWhole === true) lost += part.count
      else skipped += part?.count ?? 1
      offset = nextPart(bytes, offset)
    }
  }
  const isDamaged = readableBytes < bytes.length
  return { entries, attemptedAtMs: undefined, isDamaged, lost, readableBytes }
}

/** The next line that may begin a part, or the end. */
function nextPart(bytes: Buffer, offset: number): number {
  const starts = ['\nentries ', '\nattempt '].map((text) => bytes.indexOf(text, offset) + 1)
  return Math.min(bytes.length, ...starts.filter((start) => start > 0))
}

function parseAttempt(head: string): { wallMs: number; entries: number } | undefined {
  const [, text = '', wallMs, entries, sum] = /^(attempt (\d+) (\d+)) ([0-9a-f]+)$/.exec(head) ?? []
  return sum === checksum(Buffer.from(text))
    ? { wallMs: Number(wallMs), entries: Number(entries) }
    : undefined
}

interface Part {
  readonly count: number
  readonly bytes: number
  /** Whether its end is there. */
  readonly isWhole: boolean
  /** Undefined if it is damaged. */
  readonly entries: string[] | undefined
}

/** @returns undefined if the head cannot be read */
function parseEntries(head: string, rest: Buffer): Part | undefined {
  const [, number, size, sum] = /^entries (\d+) (\d+) ([0-9a-f]+)$/.exec(head) ?? []
  if (sum === undefined) return undefined
  const count = Number(number)
  const payload = rest.subarray(0, Number(size))
  const isWhole = payload.length === Number(size)
  const entries = payload.toString('utf8').split('\n').slice(0, -1)
  const isValid = sum === checksum(payload) && entries.length === count
  return { count, bytes: payload.length, isWhole, entries: isValid ? entries : undefined }
}

/** Enough to recognise accidents. */
const CHECKSUM_CHARACTERS = 16

function checksum(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, CHECKSUM_CHARACTERS)
}
