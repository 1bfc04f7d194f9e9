import { createHash, hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { EntryReceipt } from '../intake/intake.ts'
import { logsPaths } from '../http-contract.ts'
import { Problem, problems } from '../problems.ts'
import type { Turns } from '../turns.ts'

/** Visible ASCII. Node joins a repeated header with a comma and a space, so a repeated key never matches. */
export const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/

/** The idempotency key of a request, if it has one. @throws Problem `invalid_idempotency_key` */
function readIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined || (typeof key === 'string' && IDEMPOTENCY_KEY.test(key))) return key
  throw new Problem('invalid_idempotency_key', problems.invalid_idempotency_key.detail)
}

/** What makes a request a repetition of an earlier one: the same key. The digest shows whether target and body are the same too. */
export interface RequestIdentity {
  readonly key: string
  /** From `digestRequest`. */
  readonly digest: string
}

/** Whether a request is identified by a key or by its body. */
function hasIdentity(headers: IncomingHttpHeaders): boolean {
  return headers['idempotency-key'] !== undefined || headers['sluice-idempotency'] !== undefined
}

/**
 * The identity of a request that has an idempotency key, or whose body is its key: clients that can only send constant headers.
 *
 * @param body decoded
 * @param target see `digestRequest`
 * @throws Problem `invalid_idempotency_key`
 */
export function identifyRequest(
  headers: IncomingHttpHeaders,
  body: Buffer,
  target: string,
): RequestIdentity | undefined {
  if (!hasIdentity(headers)) return undefined
  const key = readIdempotencyKey(headers)
  const source = headers['sluice-idempotency']
  const digest = digestRequest(headers['content-type'] ?? '', body, target)
  if (source === undefined) return { key: key ?? '', digest }
  if (source !== KEY_IS_BODY) {
    throw new Problem('invalid_idempotency_key', 'Sluice-Idempotency has one value, "body". Send it once.')
  }
  if (key !== undefined)
    throw new Problem('invalid_idempotency_key', 'Send Idempotency-Key or Sluice-Idempotency, not both.')
  // No client can send this key: it has a space.
  return { key: `body ${digest}`, digest }
}

/** Hashing this much takes about 0.1 ms: less than waiting for a later turn of the event loop costs. */
const HASHED_AT_ONCE_BYTES_MAX = 64 * 1024

/**
 * The identity of a request, for which its body is hashed. 5 MiB take 8 ms, so large bodies take turns: dozens may arrive in the same
 * moment.
 *
 * @param body decoded
 * @returns not a promise for a small body, nor for a request without an identity
 * @throws Problem `invalid_idempotency_key`, or rejects with it
 */
export function identify(
  {
    headers,
    routeOptions,
    url,
  }: {
    readonly headers: IncomingHttpHeaders
    readonly routeOptions: { readonly url?: string | undefined }
    readonly url: string
  },
  body: Buffer,
  turns: Turns,
  projectId: string,
): RequestIdentity | undefined | Promise<RequestIdentity | undefined> {
  if (!hasIdentity(headers)) return undefined
  // The paths of entries are one resource.
  const target = logsPaths.includes(routeOptions.url ?? '') ? '' : url
  const pause = body.length > HASHED_AT_ONCE_BYTES_MAX ? turns.begin(projectId).pause() : undefined
  return pause === undefined
    ? identifyRequest(headers, body, target)
    : pause.then(() => identifyRequest(headers, body, target))
}

/** The value of the header Sluice-Idempotency. */
export const KEY_IS_BODY = 'body'

/** The record of a request that was accepted with an idempotency key. */
export interface IdempotencyRecord extends EntryReceipt {
  /** From `digestRequest`. */
  readonly digest: string
  /** The id of a single entry. For a batch request a unique id, by which the process that stored it recognizes its record. */
  readonly id: string
  /** The timestamp of a single entry. Empty for a batch request, whose answer follows from its body. */
  readonly timestamp: string
}

/**
 * Characters of base64url of a SHA-256: 132 bits. It takes 2^132 attempts to find a key with the hash of another client's key.
 * It takes 2^66 attempts to find two bodies with the same digest, which harms only the client that sends them. The rest of
 * both hashes would cost 42 bytes per record.
 */
const HASH_CHARACTERS = 22
const ID_CHARACTERS = 36

/**
 * The same for the same body, if it has the same media type and the same target.
 *
 * @param target the path and the query, which say how a protocol reads the body. Empty for the paths of entries: they are one resource, and
 *   earlier versions recorded its requests with this digest
 */
function digestRequest(contentType: string, body: Buffer, target: string): string {
  const [mediaType = ''] = contentType.split(';', 1)
  // A target has no spaces, and neither has a media type of entries: no two requests have the same line.
  const line = target === '' ? '' : ` ${target}`
  return createHash('sha256')
    .update(`${mediaType.trim().toLowerCase()}${line}\n`)
    .update(body)
    .digest('base64url')
    .slice(0, HASH_CHARACTERS)
}

/**
 * The digest of a part of a body. A later version may divide a body differently: its pieces then do not match those that are stored, and a
 * retry is rejected instead of being incomplete.
 */
export function digestPiece(digest: string, start: number, end: number): string {
  return hash('sha256', `${digest} ${start}-${end}`, 'base64url').slice(0, HASH_CHARACTERS)
}

/** A project's key as part of a Redis name: short, and not reversible, since a client's key may be secret. */
export function hashIdempotencyKey(projectId: string, key: string): string {
  return hash('sha256', `${projectId}\n${key}`, 'base64url').slice(0, HASH_CHARACTERS)
}

/**
 * The shard that stores the record of a key, by the hash of the key. A change of the number of shards moves keys to other
 * shards: records from before the change are not found.
 */
export function shardOf(keyHash: string, shards: number): number {
  return Buffer.from(keyHash.slice(0, 6), 'base64url').readUInt32BE() % shards
}

/** 58 characters for a batch request, about 82 for an entry. */
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
