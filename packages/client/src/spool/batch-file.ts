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
  /** Whether something could not be read. */
  readonly isDamaged: boolean
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
  let offset = 0
  while (offset < bytes.length) {
    const end = bytes.indexOf('\n', offset)
    const head = end === -1 ? '' : bytes.toString('latin1', offset, end)
    const attempt = parseAttempt(head)
    if (attempt !== undefined) {
      const isDamaged = attempt.entries !== entries.length
      return { entries, attemptedAtMs: attempt.wallMs, isDamaged, readableBytes: offset }
    }
    const part = parseEntries(head, bytes.subarray(end + 1))
    if (part === undefined) break
    entries.push(...part.entries)
    offset = end + 1 + part.bytes
  }
  return { entries, attemptedAtMs: undefined, isDamaged: offset < bytes.length, readableBytes: offset }
}

function parseAttempt(head: string): { wallMs: number; entries: number } | undefined {
  const [, text = '', wallMs, entries, sum] = /^(attempt (\d+) (\d+)) ([0-9a-f]+)$/.exec(head) ?? []
  return sum === checksum(Buffer.from(text))
    ? { wallMs: Number(wallMs), entries: Number(entries) }
    : undefined
}

function parseEntries(head: string, rest: Buffer): { entries: string[]; bytes: number } | undefined {
  const [, count, size, sum] = /^entries (\d+) (\d+) ([0-9a-f]+)$/.exec(head) ?? []
  const payload = rest.subarray(0, Number(size))
  if (sum === undefined || sum !== checksum(payload)) return undefined
  const entries = payload.toString('utf8').split('\n').slice(0, -1)
  return entries.length === Number(count) ? { entries, bytes: payload.length } : undefined
}

/** Enough to recognise accidents. */
const CHECKSUM_CHARACTERS = 16

function checksum(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, CHECKSUM_CHARACTERS)
}
