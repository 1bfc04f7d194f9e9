import { createHash, hash } from 'node:crypto'
import type { Issued } from '../intake/intake.ts'

/** What is remembered of a request that was accepted with an idempotency key. */
export interface IdempotencyRecord extends Issued {
  /** From `digestRequest`. */
  readonly digest: string
  /** Of the one entry; for a batch an id of the request, by which the process that stored it knows it again. */
  readonly id: string
  /** Of the one entry; empty for a batch, whose answer follows from its body. */
  readonly timestamp: string
}

/**
 * Characters of base64url, of a SHA-256: 132 bits. To hit the name of another's key takes 2^132 tries; to make two bodies
 * alike takes a client 2^66, and harms itself alone. The rest of the hash would cost 42 bytes a record for nothing.
 */
const HASH_CHARACTERS = 22
const ID_CHARACTERS = 36

/** Tells requests apart: the same for the same body, if it is to be understood in the same way. */
export function digestRequest(contentType: string, body: Buffer): string {
  const [mediaType = ''] = contentType.split(';', 1)
  return createHash('sha256')
    .update(`${mediaType.trim().toLowerCase()}\n`)
    .update(body)
    .digest('base64url')
    .slice(0, HASH_CHARACTERS)
}

/** A project's key as part of a Redis name: short, and not to be read back, as a key may be a secret of the client's. */
export function hashIdempotencyKey(projectId: string, key: string): string {
  return hash('sha256', `${projectId}\n${key}`, 'base64url').slice(0, HASH_CHARACTERS)
}

/**
 * The shard that keeps what was sent with a key, by the key's hash. Another number of shards finds other shards: what was
 * sent before is not known any more then.
 */
export function shardOf(keyHash: string, shards: number): number {
  return Buffer.from(keyHash.slice(0, 6), 'base64url').readUInt32BE() % shards
}

/** 58 characters for a batch, some 82 for an entry. */
export function encodeRecord({ digest, id, timestamp }: IdempotencyRecord): string {
  return digest + id + timestamp
}

export function decodeRecord(text: string): IdempotencyRecord {
  const idEnd = HASH_CHARACTERS + ID_CHARACTERS
  return {
    digest: text.slice(0, HASH_CHARACTERS),
    id: text.slice(HASH_CHARACTERS, idEnd),
    timestamp: text.slice(idEnd),
  }
}
