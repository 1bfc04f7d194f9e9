import type { QueueNames } from '@sluice/queue'
import type { Owned } from '@sluice/row-scanner'
import { type ChunkWriter, RecordQuotaError } from '../chunks/chunk-writer.ts'
import { entryAnswer, type ParsedRequest } from '../intake/intake.ts'
import { Problem, problems } from '../problems.ts'
import { decodeRecord, encodeRecord, hashIdempotencyKey, shardOf } from './idempotency-record.ts'
import type { RequestOrigin } from '../traces/request-traces.ts'

/** A request with an idempotency key. */
export interface KeyedRequest {
  readonly projectId: string
  /** From `readIdempotencyKey`. */
  readonly key: string
  /** From `digestRequest`. */
  readonly digest: string
  /** Stored if this is the first request with the key. */
  readonly parsed: ParsedRequest<Owned>
  /** Only to follow the request. */
  readonly origin: RequestOrigin
}

/** Stores the entries of a request with an idempotency key once, and replays the answer to it. */
export class Idempotency {
  readonly #writer: Pick<ChunkWriter, 'writeOnce'>
  readonly #shards: readonly QueueNames[]
  readonly #makeId: () => string

  /**
   * @param shards the names of each shard, in the order of the writer's queues
   * @param makeId makes a UUID
   */
  constructor(writer: Pick<ChunkWriter, 'writeOnce'>, shards: readonly QueueNames[], makeId: () => string) {
    this.#writer = writer
    this.#shards = shards
    this.#makeId = makeId
  }

  /**
   * Resolves when Redis has the rows and the record of the request on disk, or has those of an earlier request. A request without
   * rows gets no record.
   *
   * @returns the JSON of the answer, and whether it is the answer to an earlier request
   * @throws Problem `idempotency_key_reused`, `too_many_idempotency_keys`
   * @throws what `ChunkWriter.writeOnce` throws
   */
  async write(request: KeyedRequest): Promise<{ readonly answer: string; readonly isReplay: boolean }> {
    const { projectId, key, digest, parsed, origin } = request
    const { rows, answer, receipt } = parsed
    const record = encodeRecord({
      digest,
      id: receipt?.id ?? this.#makeId(),
      timestamp: receipt?.timestamp ?? '',
    })
    const keyHash = hashIdempotencyKey(projectId, key)
    const shard = shardOf(keyHash, this.#shards.length)
    const names = this.#shards[shard]
    // One name for all keys would replay the first answer for each of them.
    if (names === undefined) throw new RangeError(`there is no shard ${shard}`)
    const name = names.idempotencyKey(keyHash)
    const quota = names.idempotencyQuotaKey(projectId)

    const held = await this.#writer.writeOnce({ shard, name, quota, record, rows }, origin).catch(toProblem)
    if (held === record) return { answer, isReplay: false }
    const first = decodeRecord(held)
    if (first.digest !== digest)
      throw new Problem('idempotency_key_reused', problems.idempotency_key_reused.detail)
    return { answer: receipt === undefined ? answer : entryAnswer(first), isReplay: true }
  }
}

function toProblem(error: unknown): never {
  if (!(error instanceof RecordQuotaError)) throw error
  throw new Problem('too_many_idempotency_keys', problems.too_many_idempotency_keys.detail, {
    headers: { 'retry-after': String(Math.max(1, Math.ceil(error.waitMs / 1_000))) },
  })
}
