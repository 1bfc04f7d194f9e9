import type { RedisNames } from '@sluice/schema'
import { entryAnswer, type TakenIn } from '../intake/intake.ts'
import { Problem } from '../problems.ts'
import {
  decodeRecord,
  digestRequest,
  encodeRecord,
  hashIdempotencyKey,
  shardOf,
} from './idempotency-record.ts'
import type { IdempotentWriter } from './idempotent-writer.ts'

/** A request that carries an idempotency key. */
export interface KeyedRequest {
  readonly projectId: string
  /** From `readIdempotencyKey`. */
  readonly key: string
  readonly contentType: string
  /** Decoded. */
  readonly body: Buffer
  /** What it brings, if it is the first with its key. */
  readonly taken: TakenIn
}

/** Stores what comes with an idempotency key once, and answers it alike each time. */
export class Idempotency {
  readonly #writer: Pick<IdempotentWriter, 'write'>
  readonly #shards: readonly RedisNames[]
  readonly #makeId: () => string

  /**
   * @param shards the names of each, in the order of the writer's queues
   * @param makeId makes a UUID
   */
  constructor(writer: Pick<IdempotentWriter, 'write'>, shards: readonly RedisNames[], makeId: () => string) {
    this.#writer = writer
    this.#shards = shards
    this.#makeId = makeId
  }

  /**
   * Resolves once Redis has the request's rows and its record on disk, or has them from before.
   *
   * @returns the answer's JSON, and whether it was given before
   * @throws Problem `idempotency_key_reused`
   * @throws OverloadedError, QueueUnavailableError, as `IdempotentWriter.write`
   */
  async write(request: KeyedRequest): Promise<{ readonly answer: string; readonly isReplay: boolean }> {
    const { projectId, key, contentType, body, taken } = request
    const { rows, text, answer, issued } = taken
    const digest = digestRequest(contentType, body)
    const record = encodeRecord({
      digest,
      id: issued?.id ?? this.#makeId(),
      timestamp: issued?.timestamp ?? '',
    })
    const keyHash = hashIdempotencyKey(projectId, key)
    const shard = shardOf(keyHash, this.#shards.length)
    const name = this.#shards[shard]?.idempotencyKey(keyHash)
    // One name for all keys would answer each of them with the record of the first.
    if (name === undefined) throw new RangeError(`there is no shard ${shard}`)

    const held = await this.#writer.write({ shard, name, record, rows, text })
    if (held === record) return { answer, isReplay: false }
    const first = decodeRecord(held)
    if (first.digest !== digest) {
      throw new Problem(
        'idempotency_key_reused',
        'This key came with another body before. Use a new key for each body.',
      )
    }
    return { answer: issued === undefined ? answer : entryAnswer(first), isReplay: true }
  }
}
