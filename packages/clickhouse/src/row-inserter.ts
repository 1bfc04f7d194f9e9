import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client'
import {
  blockOfFrame,
  compressedBlockOf,
  compressRows,
  framesWithout,
  insertBody,
  isOfBlocks,
  keysOfFrame,
  type RowKey,
  rowsOfFrame,
} from '@sluice/rows'
import { checkDeduplication, DeduplicationError } from './deduplication-check.ts'
import { ClickHouseError, classifyInsertError, describeError } from './insert-errors.ts'
import { InsertOnce, type InsertOnceOptions, type InsertTarget } from './insert-once.ts'
import { insertStream, lookUp, queryIds, type QueryWatcher } from './query-watch.ts'
import type { StoredRows } from './stored-rows.ts'
import {
  insertBlock,
  insertBlockIfKnown,
  logsInsertBlockQuery,
  logsInsertQuery,
  logsInsertSettings,
} from './tables.ts'

/** Bytes of the body that are sent as one piece, or up to twice as many. An upload of this size makes progress in seconds, over a slow network too. */
const PIECE_BYTES = 64 * 1024

/** Sends frames of rows to ClickHouse. Nothing between the API and ClickHouse parses a value: rows are text, or a block of columns. */
export class FrameInserter {
  readonly #client: ClickHouseClient
  readonly #watch: QueryWatcher
  #settings: Promise<ClickHouseSettings> | undefined

  constructor(client: ClickHouseClient, watch: QueryWatcher) {
    this.#client = client
    this.#watch = watch
  }

  /**
   * Inserts the rows of several frames as one insert. Resolves when ClickHouse has acknowledged it.
   *
   * @param token ClickHouse ignores the insert if it remembers the token
   * @param queryId ClickHouse rejects the insert while a query with this id is running
   * @throws errors for `classifyInsertError`
   */
  async insert(frames: readonly Buffer[], token: string, queryId = queryIds.rows(token)): Promise<void> {
    const isBlock = frames.length > 0 && frames.every(isOfBlocks)
    const params = {
      query: isBlock ? logsInsertBlockQuery : logsInsertQuery,
      http_headers: { 'Content-Encoding': 'zstd' },
      clickhouse_settings: { ...(await this.#checkedSettings()), insert_deduplication_token: token },
    }
    const body = isBlock
      ? insertBody(frames.map((frame) => readable(compressedBlockOf(frame))))
      : frames.map(asText)
    try {
      await insertStream(this.#client, this.#watch, queryId, params, (onPiece) => piecesOf(body, onPiece))
    } catch (error) {
      // Perhaps it restarts, as another version.
      if (!(error instanceof ClickHouseError)) this.#settings = undefined
      // ClickHouse may take what follows damaged values for something else, and has many errors for that.
      if (isBlock && error instanceof ClickHouseError && classifyInsertError(error).failure !== 'poison')
        for (const frame of frames) readable(blockOfFrame(frame))
      throw error
    }
  }

  /** The settings of all inserts, once ClickHouse was seen to deduplicate with them. */
  #checkedSettings(): Promise<ClickHouseSettings> {
    this.#settings ??= this.#checkSettings().catch((error: unknown) => {
      this.#settings = undefined
      throw error
    })
    return this.#settings
  }

  async #checkSettings(): Promise<ClickHouseSettings> {
    try {
      const found = await lookUp<{ name: string }>(this.#client, this.#watch, {
        query: 'SELECT name FROM system.settings WHERE name IN {names: Array(String)}',
        query_params: { names: Object.keys(insertBlockIfKnown) },
      })
      const known = Object.fromEntries(found.map(({ name }) => [name, insertBlockIfKnown[name] ?? '']))
      const settings = { ...logsInsertSettings, ...insertBlock, ...known }
      await checkDeduplication(this.#client, this.#watch, settings)
      return settings
    } catch (error) {
      if (!(error instanceof ClickHouseError)) throw error
      // A code such as MEMORY_LIMIT_EXCEEDED says nothing about the rows. The caller must not split a batch because of it.
      throw new DeduplicationError(`cannot be checked: ${describeError(error)}`)
    }
  }

  /** Whether ClickHouse certainly runs an insert with this token. */
  async isRunning(token: string): Promise<boolean> {
    return this.#watch.isRunning(queryIds.rows(token))
  }
}

/** Part of the batch is text: chunks of an earlier version, or rows that are left of a frame. */
function asText(frame: Buffer): Buffer {
  return isOfBlocks(frame) ? compressRows(readable(rowsOfFrame(frame)).join('')) : frame
}

/** @throws ClickHouseError, as ClickHouse would of text: the batch is then inserted without the frame */
function readable<Content>(content: Content | undefined): Content {
  if (content !== undefined) return content
  throw new ClickHouseError({ message: 'a chunk cannot be read', code: '117', type: 'INCORRECT_DATA' })
}

/** Joins small parts, and divides large ones. */
function* piecesOf(parts: Iterable<Buffer>, onPiece: () => void): Generator<Buffer> {
  let [held, bytes]: [Buffer[], number] = [[], 0]
  for (const part of parts) {
    for (let from = 0; from < part.length; from += PIECE_BYTES) {
      const piece = part.subarray(from, from + PIECE_BYTES)
      held.push(piece)
      bytes += piece.length
      if (bytes < PIECE_BYTES) continue
      onPiece()
      yield Buffer.concat(held)
      ;[held, bytes] = [[], 0]
    }
  }
  if (bytes === 0) return
  onPiece()
  yield Buffer.concat(held)
}

export interface RowInserterOptions extends InsertOnceOptions {
  readonly frameInserter: Pick<FrameInserter, 'insert' | 'isRunning'>
  readonly storedRows: Pick<StoredRows, 'find'>
}

type Insert = [frames: readonly Buffer[], token: string, onUnanswered: () => void, queryId?: string]

/** Inserts frames of rows exactly once. `onUnanswered` is called when an attempt fails without a response from ClickHouse: it may still commit. */
export class RowInserter {
  readonly #options: RowInserterOptions

  constructor(options: RowInserterOptions) {
    this.#options = options
  }

  /**
   * Prepares the attempts to insert frames.
   *
   * @param wasSent whether they may have been sent before
   * @param replacementsMax as for `InsertOnce`. Rows that can also be inserted in parts need none
   */
  prepare(
    frames: readonly Buffer[],
    token: string,
    wasSent: boolean,
    onUnanswered: () => void = () => undefined,
    replacementsMax = 0,
  ): InsertOnce<Buffer> {
    const { frameInserter } = this.#options
    const target: InsertTarget<Buffer> = {
      all: frames,
      token,
      wasSent,
      replacementsMax,
      findMissing: async () => framesWithout(await this.findStored(keysIn(frames)), frames),
      insert: (missing, itsToken) => this.#insert(missing, itsToken, onUnanswered),
      isRunning: () => frameInserter.isRunning(token),
    }
    return new InsertOnce(target, this.#options)
  }

  /** Makes one attempt to insert frames, without a lookup before or after it. */
  async send(...insert: Insert): Promise<void> {
    await this.#options.beforeAttempt()
    await this.#insert(...insert)
  }

  async #insert(...[frames, token, onUnanswered, queryId]: Insert): Promise<void> {
    try {
      await this.#options.frameInserter.insert(frames, token, queryId)
    } catch (error) {
      if (classifyInsertError(error).failure === 'transient') onUnanswered()
      throw error
    }
  }

  /** The ids of the rows that are stored. @throws LookupError, and what `beforeAttempt` throws */
  async findStored(rows: Iterable<RowKey>): Promise<ReadonlySet<string>> {
    await this.#options.beforeAttempt()
    return this.#options.storedRows.find(rows).catch((error: unknown) => {
      // Transient: the error says nothing about the rows themselves.
      throw new Error(describeError(error))
    })
  }
}

/** Skips frames that cannot be read. */
function* keysIn(frames: readonly Buffer[]): Generator<RowKey> {
  for (const frame of frames) yield* keysOfFrame(frame) ?? []
}
