import type { QueueNames } from '@sluice/queue'
import type { Owned } from '@sluice/row-scanner'
import type { Span } from '@sluice/traces'
import { createHash, hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { ChunkWriter } from '../chunks/chunk-writer.ts'
import { logsPaths } from '../http-contract.ts'
import { entryAnswer, type ParsedRequest } from '../intake/intake.ts'
import { Problem } from '../problems.ts'

/** Visible ASCII. Node joins a repeated header with a comma and a space, so a repeated key never matches. */
export const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/
/** The value of the header Sluice-Idempotency. */
export const KEY_IS_BODY = 'body'
/** Elastic's client for JavaScript sends it in two spellings, and Node joins them. */
const KEYS_ARE_BODY = /^body(, ?body)*$/
/**
 * Characters of base64url of a SHA-256: 132 bits. It takes 2^132 attempts to find a key with the hash of another client's key.
 * It takes 2^66 attempts to find two bodies with the same digest, which harms only the client that sends them. The rest of
 * both hashes would cost 42 bytes per record.
 */
const HASH_CHARACTERS = 22
const ID_CHARACTERS = 36

/** What makes a request a repetition of an earlier one: the same key. The digest shows whether target and body are the same too. */
export interface RequestIdentity {
  readonly key: string
  readonly digest: string
}

/** The identity of a request with an idempotency key, or whose decoded body is its key. @throws Problem `invalid_idempotency_key` */
export function identify(
  request: Pick<FastifyRequest, 'headers' | 'url'> & { routeOptions: { url?: string | undefined } },
  body: Buffer,
): RequestIdentity | undefined {
  const { 'idempotency-key': key, 'sluice-idempotency': source, 'content-type': type = '' } = request.headers
  if (key === undefined && source === undefined) return undefined
  if (key !== undefined && (typeof key !== 'string' || !IDEMPOTENCY_KEY.test(key)))
    throw new Problem('invalid_idempotency_key')
  if (source !== undefined && !KEYS_ARE_BODY.test(String(source)))
    throw new Problem('invalid_idempotency_key', 'Sluice-Idempotency has one value: "body".')
  if (source !== undefined && key !== undefined)
    throw new Problem('invalid_idempotency_key', 'Send Idempotency-Key or Sluice-Idempotency, not both.')
  const [mediaType = ''] = type.split(';', 1)
  // The path and the query say how a protocol reads the body. They have no spaces, and neither has a media type of entries: no two requests
  // have the same line. The paths of entries are one resource. Earlier versions recorded its requests with this digest.
  const target = logsPaths.includes(request.routeOptions.url ?? '') ? '' : ` ${request.url}`
  const digest = createHash('sha256')
    .update(`${mediaType.trim().toLowerCase()}${target}\n`)
    .update(body)
    .digest('base64url')
    .slice(0, HASH_CHARACTERS)
  // No client can send a key with a space.
  return { key: key ?? `body ${digest}`, digest }
}

/**
 * The digest of a part of a body. A later version may divide a body differently: its pieces then do not match those that are stored, and a
 * retry is rejected instead of being incomplete.
 */
export function digestPiece(digest: string, start: number, end: number): string {
  return shortHash(`${digest} ${start}-${end}`)
}

/** A project's key as part of a Redis name: short, and not reversible, since a client's key may be secret. */
export function hashIdempotencyKey(projectId: string, key: string): string {
  return shortHash(`${projectId}\n${key}`)
}

function shortHash(input: string): string {
  return hash('sha256', input, 'base64url').slice(0, HASH_CHARACTERS)
}

/**
 * The shard that stores the record of a key, by the hash of the key. A change of the number of shards moves keys to other
 * shards: records from before the change are not found.
 */
export function shardOf(keyHash: string, shards: number): number {
  return Buffer.from(keyHash.slice(0, 6), 'base64url').readUInt32BE() % shards
}

/** A request with an idempotency key, or a piece of it. Its rows are stored if it is the first one with the key. */
interface KeyedRequest extends RequestIdentity {
  readonly projectId: string
  readonly parsed: ParsedRequest<Owned>
  readonly span: Span | null
}

export type WriteOnce = ReturnType<typeof idempotentWriter>

/**
 * Stores the entries of a request with an idempotency key once, and replays the response to it.
 *
 * @param shards the names of each shard, in the order of the writer's queues
 * @returns resolves when Redis has on disk the rows and the record of the request, or of an earlier request with its key: with the JSON of the
 *   response, and whether it is the response to an earlier request. A request without rows gets no record. Rejects with Problem
 *   `idempotency_key_reused`, and what `ChunkWriter.writeOnce` throws
 */
export function idempotentWriter(
  writer: Pick<ChunkWriter, 'writeOnce'>,
  shards: readonly QueueNames[],
  makeId: () => string,
) {
  return async (request: KeyedRequest): Promise<{ readonly answer: string; readonly isReplay: boolean }> => {
    const { projectId, key, digest, span } = request
    const { rows, answer, receipt } = request.parsed
    // 58 characters for a batch request, about 82 for an entry. The response to a batch request follows from its body; the process that stored
    // it recognizes its record by a unique id.
    const record = digest + (receipt === undefined ? makeId() : receipt.id + receipt.timestamp)
    const keyHash = hashIdempotencyKey(projectId, key)
    const shard = shardOf(keyHash, shards.length)
    const names = shards[shard]
    // One name for all keys would replay the first response for each of them.
    if (names === undefined) throw new RangeError(`there is no shard ${shard}`)
    const name = names.idempotencyKey(keyHash)
    const quota = names.idempotencyQuotaKey(projectId)

    const held = await writer.writeOnce({ shard, name, quota, record, rows }, span)
    if (held === record) return { answer, isReplay: false }
    if (!held.startsWith(digest)) throw new Problem('idempotency_key_reused')
    const timestampStart = HASH_CHARACTERS + ID_CHARACTERS
    const first = { id: held.slice(HASH_CHARACTERS, timestampStart), timestamp: held.slice(timestampStart) }
    return { answer: receipt === undefined ? answer : entryAnswer(first), isReplay: true }
  }
}
