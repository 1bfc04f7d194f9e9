import { eventually } from '@sluice/harness'
import { compressRows, rowKey } from '@sluice/rows'
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { connectClickHouse } from '../src/client.ts'
import { FrameInserter, RowInserter } from '../src/row-inserter.ts'
import { StoredRows } from '../src/stored-rows.ts'
import { insertBlock, logsInsertQuery, logsInsertSettings, logsTable } from '../src/tables.ts'
import { databaseOf, insertOptions, makeRow, openTestDatabase, select, unwatched } from './test-database.ts'

// The splitter of batches relies on what is tested here. It is a property of ClickHouse, not of this project's code.

/** ClickHouse starts an insert when it has this much of the query and the rows. Half of a row with this message is longer. */
const START_BYTES = 1_000
const LONG_MESSAGE = 'm'.repeat(4 * START_BYTES)

const ROUNDS = 20

/** The worker that splits the batch. */
const splitter = await openTestDatabase()
/** The workers that insert the batch as a whole. */
const others = connectClickHouse(
  { ...inject('services').clickhouse, database: await databaseOf(splitter) },
  { requestTimeoutMs: 20_000, connectionsMax: 4 },
)
const rowInserter = new RowInserter({
  frameInserter: new FrameInserter(splitter, unwatched),
  storedRows: new StoredRows(splitter, Date.now, unwatched),
  ...insertOptions,
})

/** Rows of two days of expiry, and therefore of two partitions, alternating. */
let batch: readonly string[]
let partitions: readonly [readonly string[], readonly string[]]
let projectId: string
let token: string

afterAll(async () => {
  await splitter.close()
  await others.close()
})

beforeEach(makeBatch)

/** Makes a batch of another project, with an unused token. */
function makeBatch(): void {
  projectId = randomUUID()
  token = randomUUID()
  const receivedAtMs = Date.now()
  batch = [30, 31, 30, 31, 30, 31].map((retentionDays) =>
    makeRow({ projectId, retentionDays, receivedAtMs }, { message: LONG_MESSAGE }),
  )
  partitions = [
    batch.filter((_row, index) => index % 2 === 0),
    batch.filter((_row, index) => index % 2 === 1),
  ]
}

/** Inserts the whole batch. Each insert has another query id: on a cluster, servers do not know the queries of each other. */
const insertBatch = (): Promise<void> =>
  new FrameInserter(others, unwatched).insert([compressRows(batch.join(''))], token, randomUUID())

/** Consumes the token with one row. */
const consume = (row: string | undefined): Promise<'stored'> =>
  rowInserter.consumeToken([compressRows(row ?? '')], token, () => undefined)

/** The ids of rows. A row that is stored twice is in the list twice. */
const idsOf = (rows: readonly (string | undefined)[]): string[] =>
  rows.map((row) => rowKey(row ?? '').id).toSorted()

async function storedIds(): Promise<string[]> {
  const query = `SELECT toString(id) AS id FROM ${logsTable} WHERE project_id = {projectId: String}`
  return (await select<{ id: string }>(splitter, query, { projectId })).map(({ id }) => id).toSorted()
}

interface RunningInsert {
  /** Sends the rest of the rows, and waits until ClickHouse has confirmed the insert. */
  finish(): Promise<void>
}

/** Starts an insert like FrameInserter, but sends the second half of the rows later. Resolves when ClickHouse runs the insert. */
async function start(rows: readonly string[]): Promise<RunningInsert> {
  const text = rows.join('')
  const middle = text.length / 2
  const [firstHalf, secondHalf] = [compressRows(text.slice(0, middle)), compressRows(text.slice(middle))]
  const held = Promise.withResolvers<void>()
  async function* body(): AsyncGenerator<Buffer> {
    // ClickHouse uses the end of a frame only when it has bytes of the next one.
    yield Buffer.concat([firstHalf, secondHalf.subarray(0, 1)])
    await held.promise
    yield secondHalf.subarray(1)
  }
  const queryId = randomUUID()
  const confirmed = others.exec({
    query: logsInsertQuery,
    query_id: queryId,
    values: Readable.from(body(), { objectMode: false }),
    http_headers: { 'Content-Encoding': 'zstd' },
    clickhouse_settings: {
      ...logsInsertSettings,
      insert_deduplication_token: token,
      min_insert_block_size_rows: String(insertBlock.rowsMin),
      min_insert_block_size_bytes: String(insertBlock.bytesMin),
      max_query_size: String(START_BYTES),
    },
  })
  await Promise.race([confirmed, eventually(async () => expect(await isRunning(queryId)).toBe(true))])
  return {
    finish: async () => {
      expect(await isRunning(queryId)).toBe(true)
      held.resolve()
      const { stream } = await confirmed
      stream.resume()
    },
  }
}

async function isRunning(queryId: string): Promise<boolean> {
  const query = 'SELECT 1 FROM system.processes WHERE query_id = {queryId: String}'
  return (await select(splitter, query, { queryId })).length > 0
}

it('stores a batch whose insert is held, if its token is not consumed', async () => {
  const insert = await start(batch)
  expect(await storedIds()).toEqual([])
  await insert.finish()
  expect(await storedIds()).toEqual(idsOf(batch))
})

describe.each([
  ['the first', 0],
  ['the second', 1],
] as const)('a token that is consumed in %s partition', (_which, index) => {
  let consumed: readonly string[]
  let unused: readonly string[]

  beforeEach(() => {
    consumed = partitions[index]
    unused = partitions[1 - index] ?? []
  })

  it('makes a later insert of the batch store only the rows of the other partition', async () => {
    await consume(consumed[1])
    expect(await storedIds()).toEqual(idsOf([consumed[1]]))
    await insertBatch()
    expect(await storedIds()).toEqual(idsOf([consumed[1], ...unused]))
    await insertBatch()
    expect(await storedIds()).toEqual(idsOf([consumed[1], ...unused]))
  })

  it('makes an insert that is already running store only the rows of the other partition', async () => {
    const insert = await start(batch)
    await consume(consumed[0])
    expect(await storedIds()).toEqual(idsOf([consumed[0]]))
    await insert.finish()
    expect(await storedIds()).toEqual(idsOf([consumed[0], ...unused]))
  })

  it('was used already if the batch is stored, and then adds nothing', async () => {
    await insertBatch()
    for (const row of consumed) await consume(row)
    expect(await storedIds()).toEqual(idsOf(batch))
  })

  it('was used already if the batch was stored while the consumption was running, and then adds nothing', async () => {
    const consumption = await start(consumed.slice(0, 1))
    await insertBatch()
    await consumption.finish()
    expect(await storedIds()).toEqual(idsOf(batch))
  })

  it('stays consumed by the first row, whichever rows follow', async () => {
    await consume(consumed[2])
    await consume(consumed[0])
    await consume(consumed[2])
    expect(await storedIds()).toEqual(idsOf([consumed[2]]))
  })
})

describe.each([
  ['in order', [0, 1]],
  ['in reverse order', [1, 0]],
] as const)('a token that is consumed in both partitions, %s,', (_order, order) => {
  it('makes every later insert of the batch store nothing', async () => {
    const rows = order.map((index) => partitions[index][0])
    for (const row of rows) await consume(row)
    await insertBatch()
    expect(await storedIds()).toEqual(idsOf(rows))
  })

  it('makes every insert that is already running store nothing', async () => {
    const inserts = [await start(batch), await start(batch.toReversed())]
    const rows = order.map((index) => partitions[index][0])
    for (const row of rows) await consume(row)
    expect(await storedIds()).toEqual(idsOf(rows))
    for (const insert of inserts) await insert.finish()
    expect(await storedIds()).toEqual(idsOf(rows))
  })

  it('makes an insert that ends between the consumptions store only the rows of the unused partition', async () => {
    const [first, second] = order.map((index) => partitions[index])
    const insert = await start(batch)
    await consume(first?.[0])
    await insert.finish()
    await consume(second?.[0])
    expect(await storedIds()).toEqual(idsOf([first?.[0], ...(second ?? [])]))
  })
})

it('stores either one row or all rows of a partition, and none twice, if the inserts and the consumptions race', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    makeBatch()
    await Promise.all([
      insertBatch(),
      insertBatch(),
      ...partitions.map((rows) => consume(rows[0])),
      insertBatch(),
    ])
    const stored = await storedIds()
    expect(new Set(stored).size).toBe(stored.length)
    for (const rows of partitions) {
      const ids = new Set(idsOf(rows))
      const ofPartition = stored.filter((id) => ids.has(id))
      expect([idsOf(rows.slice(0, 1)), idsOf(rows)]).toContainEqual(ofPartition)
    }
  }
})
