import { idTimeMs } from '@sluice/rows'
import type { RedisConnection } from '@sluice/runtime'
import type { QueueNames } from './queue-names.ts'
import { defineScript, type RedisScript } from './redis-script.ts'

/** Chunks of one state that are read. Each costs Redis one short script. */
export const SUMMARIES_MAX = 25

export type ChunkState = 'failed' | 'inHand' | 'waiting' | 'delayed'

/** A chunk without its rows. */
export interface ChunkSummary {
  readonly id: string
  /** When its first row was received, ms since 1970. Undefined if the id is not one of Sluice. */
  readonly receivedAtMs: number | undefined
  /** Undefined if the data is damaged, or in an unknown format. */
  readonly rows: number | undefined
  /** Size of its rows before compression. Undefined as `rows`. */
  readonly bytes: number | undefined
  /** The hash of its columns. Undefined in chunks of early versions, and as `rows`. */
  readonly columns: string | undefined
  /** Size of its data in Redis. */
  readonly storedBytes: number
  /** The batch that it belongs to. Undefined if it was not claimed. */
  readonly batchId: string | undefined
  /** Why and when it failed; undefined if it did not. */
  readonly failure: { readonly atMs: number; readonly reason: string } | undefined
}

/**
 * KEYS: a job, the id of the batch of its chunk. Returns nothing without the job. Otherwise the numbers at the beginning of its data and
 * the hash of its columns (each empty if the data does not begin as `encodeChunk` makes it), the size of the data, when it failed, why,
 * and the batch. So no row leaves Redis.
 */
const SUMMARIZE = `
local data = redis.call('HGET', KEYS[1], 'data')
if not data then return {} end
local head = string.sub(data, 1, 200)
local columns, rows, bytes = string.match(head, '^{"v":1,"columns":"(%x+)","rows":(%d+),"bytes":(%d+),"frame":"')
if not rows then rows, bytes = string.match(head, '^{"v":1,"rows":(%d+),"bytes":(%d+),"frame":"') end
local function text(value) return value or '' end
local failed = redis.call('HMGET', KEYS[1], 'finishedOn', 'failedReason')
return {text(columns), text(rows), text(bytes), #data, text(failed[1]), text(failed[2]), text(redis.call('GET', KEYS[2]))}`

type Answer =
  | readonly []
  | readonly [
      columns: string,
      rows: string,
      bytes: string,
      storedBytes: number,
      failedAt: string,
      reason: string,
      batchId: string,
    ]

/** The reasons that a worker makes without quoting anything. Any other is the message of a defect, and may contain parts of rows. */
const KNOWN_REASON =
  /^(the data of the job is damaged|the queue does not have all chunks of batch [\w-]{1,64}|(rows|the row|the dead letter) of [\w/-]{1,128} (are|is) not found)$/
const OTHER_REASON = 'a defect of the worker; `sluice failed-chunks list` prints the message'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Reads the chunks of a queue without their rows. */
export class ChunkSummaries {
  readonly #redis: RedisConnection
  readonly #summarize: RedisScript<Answer>

  constructor(redis: RedisConnection) {
    this.#redis = redis
    this.#summarize = defineScript(redis, 'sluiceSummarizeChunk', SUMMARIZE)
  }

  /**
   * The first chunks of a state, at most `SUMMARIES_MAX`: those that failed last, or those that were fetched or added first.
   *
   * @throws if Redis rejects it
   */
  async read(names: QueueNames, state: ChunkState): Promise<ChunkSummary[]> {
    const ids = await this.#ids(names, state)
    const summaries = await Promise.all(ids.map((id) => this.#read(names, id)))
    // A job may be completed between the two commands.
    return summaries.filter((summary) => summary !== undefined)
  }

  async #ids(names: QueueNames, state: ChunkState): Promise<string[]> {
    if (state === 'failed') return this.#redis.zrevrange(names.failedKey, 0, SUMMARIES_MAX - 1)
    if (state === 'delayed') return this.#redis.zrange(names.delayedKey, '0', String(SUMMARIES_MAX - 1))
    const list = state === 'inHand' ? names.activeKey : names.waitKey
    // Their first ones are at the end.
    return (await this.#redis.lrange(list, -SUMMARIES_MAX, -1)).toReversed()
  }

  async #read(names: QueueNames, id: string): Promise<ChunkSummary | undefined> {
    const answer = await this.#summarize([names.jobKey(id), names.chunkKey(id)], [])
    if (answer.length === 0) return undefined
    const [columns, rows, bytes, storedBytes, failedAt, reason, batchId] = answer
    return {
      id,
      receivedAtMs: UUID.test(id) ? idTimeMs(id) : undefined,
      rows: rows === '' ? undefined : Number(rows),
      bytes: bytes === '' ? undefined : Number(bytes),
      columns: columns.length === 8 ? columns : undefined,
      storedBytes,
      batchId: batchId === '' ? undefined : batchId,
      failure:
        failedAt === ''
          ? undefined
          : { atMs: Number(failedAt), reason: KNOWN_REASON.test(reason) ? reason : OTHER_REASON },
    }
  }
}
