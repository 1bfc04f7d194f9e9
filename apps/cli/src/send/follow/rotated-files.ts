import { type FileHandle, open, readdir, readlink, realpath } from 'node:fs/promises'
import { basename, dirname, join, parse, resolve } from 'node:path'
import { type FileIdentity, hasHeadOf, hasNumbersOf, numberOf } from './file-identity.ts'

/** A copy is recognized by its first bytes alone. Fewer could be those of another file. */
const COPY_HEAD_BYTES_MIN = 64
const SIBLINGS_MAX = 1_000
/** Compared at a time. */
const PIECE_BYTES = 256 * 1024
const COMPRESSED = /\.(?:gz|zst|bz2|xz|br|zip|lz4)$/

export interface RotatedFile {
  readonly path: string
  readonly file: FileHandle
  /** `numberOf` its identity. */
  readonly number: string
  readonly modifiedMs: number
}

/** The names that rotation gives to a log: `app.log.1`, `app.log-20261120`, `app-2026-11-20.log`, `app.1.log`. */
function rotatedNames(path: string): RegExp {
  const { name, ext, base } = parse(path)
  const [whole, stem, extension] = [base, name, ext].map(escapePattern)
  const version = String.raw`[._-]\d[\w.-]*`
  return new RegExp(String.raw`^(?:${whole}${version}|${whole}\.old|${stem}${version}${extension})$`)
}

/**
 * The names of the files before and after one with a date, which programs write to in turn, and point a link to the last one: the
 * names that differ only in digits, from the year on. What comes before the year may be the number of another log.
 */
function datedNames(path: string): RegExp | undefined {
  const { base } = parse(path)
  const dateAt = base.search(/\d{4}/)
  if (dateAt < 0) return undefined
  const dated = escapePattern(base.slice(dateAt)).replaceAll(/\d+/g, String.raw`\d+`)
  return new RegExp(`^${escapePattern(base.slice(0, dateAt))}${dated}$`)
}

function escapePattern(text: string): string {
  return text.replaceAll(/\W/g, String.raw`\$&`)
}

/** The newest files are the first ones of those with numbers, and the last ones of those with dates. */
function newest(names: readonly string[]): readonly string[] {
  if (names.length <= SIBLINGS_MAX) return names
  const sorted = names.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  return [...sorted.slice(0, SIBLINGS_MAX / 2), ...sorted.slice(-SIBLINGS_MAX / 2)]
}

/** Opens the rotated files of a log that are not compressed, the oldest first. The caller must close them. */
export async function openRotated(path: string): Promise<RotatedFile[]> {
  const found = new Map<string, RotatedFile>()
  const target = await targetOf(path)
  const places = [{ place: path, names: [rotatedNames(path)] }]
  if (target !== path) places.push({ place: target, names: namesOfTarget(path, target) })
  for (const { place, names } of places) {
    for (const rotated of await openSiblings(place, names)) {
      if (found.has(rotated.number)) await rotated.file.close()
      else found.set(rotated.number, rotated)
    }
  }
  return [...found.values()].toSorted((a, b) => a.modifiedMs - b.modifiedMs)
}

/** Where the log is. Kubernetes rotates it there, and leaves the link as it is. */
async function targetOf(path: string): Promise<string> {
  return realpath(path).catch(async () => {
    const target = await readlink(path).catch(() => '')
    return target === '' ? path : resolve(dirname(path), target)
  })
}

/** A link with another name than its target may have pointed to other files. */
function namesOfTarget(path: string, target: string): RegExp[] {
  const dated = basename(target) === basename(path) ? undefined : datedNames(target)
  return dated === undefined ? [rotatedNames(target)] : [rotatedNames(target), dated]
}

async function openSiblings(path: string, names: readonly RegExp[]): Promise<RotatedFile[]> {
  const folder = dirname(path)
  const found: RotatedFile[] = []
  const siblings = (await readdir(folder).catch(() => [])).filter(
    (name) =>
      name !== basename(path) && names.some((pattern) => pattern.test(name)) && !COMPRESSED.test(name),
  )
  for (const name of newest(siblings)) {
    const opened = await openRegular(join(folder, name))
    if (opened !== undefined) found.push(opened)
  }
  return found
}

async function openRegular(path: string): Promise<RotatedFile | undefined> {
  // It may be rotated again at any time.
  const file = await open(path).catch(() => undefined)
  if (file === undefined) return undefined
  const stats = await file.stat({ bigint: true })
  if (stats.isFile()) {
    const number = numberOf({ device: String(stats.dev), inode: String(stats.ino) })
    // Not from `stats`: the same time must be the same number everywhere.
    const { mtimeMs } = await file.stat()
    return { path, file, number, modifiedMs: mtimeMs }
  }
  await file.close()
  return undefined
}

/** Whether this is the file with the identity, or a copy that has at least as many bytes. */
export async function isFileOrCopy(
  file: FileHandle,
  identity: FileIdentity,
  offset: number,
): Promise<boolean> {
  if (!(await hasHeadOf(file, identity)) || (await file.stat()).size < offset) return false
  return identity.headBytes >= COPY_HEAD_BYTES_MIN || hasNumbersOf(file, identity)
}

/** Whether the file has the bytes of the identity and no others. If the file itself was truncated, this is its copy, however short. */
export async function isWholeCopy(file: FileHandle, identity: FileIdentity): Promise<boolean> {
  return (await file.stat()).size === identity.headBytes && hasHeadOf(file, identity)
}

/** Whether all bytes of the file are the first ones of the other file. False if the signal is aborted meanwhile. */
export async function isBeginningOf(
  file: FileHandle,
  whole: FileHandle,
  signal: AbortSignal,
): Promise<boolean> {
  const { size } = await file.stat()
  if ((await whole.stat()).size < size) return false
  for (let at = 0; at < size; at += PIECE_BYTES) {
    const bytes = Math.min(PIECE_BYTES, size - at)
    const [piece, expected] = await Promise.all([readAt(file, at, bytes), readAt(whole, at, bytes)])
    if (signal.aborted || piece.length < bytes || !piece.equals(expected)) return false
  }
  return true
}

async function readAt(file: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(bytes), 0, bytes, position)
  return buffer.subarray(0, bytesRead)
}
