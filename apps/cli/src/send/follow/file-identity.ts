import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'

/** Which file it is, whatever its name is now. */
export interface FileIdentity {
  /** The number of the device, and that of the file on it. The number of a deleted file may be used again. */
  readonly device: string
  readonly inode: string
  /** The first bytes of the file, as a hash: a log only grows at its end. */
  readonly headBytes: number
  readonly headHash: string
}

/** Enough for several lines with their times. */
export const headBytesMax = 1_024

/** @param bytesMax how many bytes of the file have been read: those do not change */
export async function identify(file: FileHandle, bytesMax: number): Promise<FileIdentity> {
  const { dev, ino } = await file.stat({ bigint: true })
  const head = await readHead(file, Math.min(bytesMax, headBytesMax))
  return { device: String(dev), inode: String(ino), headBytes: head.length, headHash: hashOf(head) }
}

/** The identity of a file with these numbers that begins with these bytes. */
export function withHead({ device, inode }: FileIdentity, bytes: Buffer): FileIdentity {
  const head = bytes.subarray(0, headBytesMax)
  return { device, inode, headBytes: head.length, headHash: hashOf(head) }
}

/** The numbers of a file as a key. */
export const numberOf = ({ device, inode }: Pick<FileIdentity, 'device' | 'inode'>): string =>
  `${device}:${inode}`

/** Whether the file begins with the bytes of this identity. It may be the file itself, or a copy. */
export async function hasHeadOf(file: FileHandle, { headBytes, headHash }: FileIdentity): Promise<boolean> {
  return hashOf(await readHead(file, headBytes)) === headHash
}

/** Whether the file has the numbers of this identity. */
export async function hasNumbersOf(file: FileHandle, { device, inode }: FileIdentity): Promise<boolean> {
  const { dev, ino } = await file.stat({ bigint: true })
  return String(dev) === device && String(ino) === inode
}

async function readHead(file: FileHandle, bytes: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, 0)
  return buffer.subarray(0, bytesRead)
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64url')
}
