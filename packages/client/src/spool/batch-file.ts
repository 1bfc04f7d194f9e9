import { createHash } from 'node:crypto'

/*
 * A file has the entries of one batch. Each write is a line: its checksum, and entries, separated by tabs.
 *
 *   0123456789abcdef	{"level":"info","message":"first",…}	{"level":"info","message":"second",…}
 *
 * A last line without its line break was written incompletely: it is ignored. The name of the file has the rest:
 *
 *   <id of the lock>.<time of creation>-<number>-<idempotency key>[.<time of the first attempt>-<entries>].batch
 *
 * A batch is written completely before its first attempt. So the entries that the name of an attempt counts are never missing, unless the disk
 * lost them.
 */

export interface FileName {
  /** Of the lock whose holder owns the file. */
  readonly id: string
  /** Files that are sorted by it are in the order of their creation. */
  readonly order: string
  readonly idempotencyKey: string
  /** The first attempt that may have succeeded. */
  readonly attempt: { readonly wallMs: number; readonly entries: number } | undefined
}

export function formatFileName({ id, order, idempotencyKey, attempt }: FileName): string {
  const mark = attempt === undefined ? '' : `.${Math.round(attempt.wallMs)}-${attempt.entries}`
  return `${id}.${order}-${idempotencyKey}${mark}.batch`
}

export function parseFileName(name: string): FileName | undefined {
  const [, id, order, idempotencyKey, wallMs, entries] =
    /^([0-9a-f]{8})\.(\d{15}-\d{9})-([\w-]{1,200})(?:\.(\d{1,15})-(\d{1,4}))?\.batch$/.exec(name) ?? []
  if (id === undefined || order === undefined || idempotencyKey === undefined) return undefined
  const attempt = wallMs === undefined ? undefined : { wallMs: Number(wallMs), entries: Number(entries) }
  return { id, order, idempotencyKey, attempt }
}

export interface FileContent {
  readonly entries: readonly string[]
  /** How many entries are in damaged lines, at least. */
  readonly lost: number
  /** The size of the file without an incomplete last line. */
  readonly bytes: number
}

export function encodeLine(entries: readonly string[]): Buffer {
  const payload = entries.join('\t')
  return Buffer.from(`${checksum(payload)}\t${payload}\n`)
}

export function parseFile(file: Buffer): FileContent {
  const bytes = file.lastIndexOf('\n') + 1
  const lines = file.toString('utf8', 0, bytes).split('\n').slice(0, -1)
  const entries: string[] = []
  let lost = 0
  for (const line of lines) {
    const start = line.indexOf('\t') + 1
    const payload = line.slice(start)
    const isValid = line.slice(0, Math.max(0, start - 1)) === checksum(payload)
    if (isValid) entries.push(...payload.split('\t'))
    else lost += Math.max(1, line.split('\t').length - 1)
  }
  return { entries, lost, bytes }
}

/** Enough to recognise accidents. */
const CHECKSUM_CHARACTERS = 16

function checksum(payload: string): string {
  return createHash('sha256').update(payload).digest('hex').slice(0, CHECKSUM_CHARACTERS)
}
