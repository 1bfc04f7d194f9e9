import { eventually } from '@sluice/harness'
import { compressRows, rowKey } from '@sluice/rows'
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { queryIds } from '../src/query-watch.ts'
import { FrameInserter, RowInserter } from '../src/row-inserter.ts'
import { storedRowFinder } from '../src/stored-rows.ts'
import { insertBlock, logsInsertQuery, logsInsertSettings, logsTable } from '../src/tables.ts'
import { connectAgain, insertOptions, makeRow, openTestDatabase, select, unwatched } from './test-database.ts'

// The splitter of batches relies on what is tested here. It is a property of ClickHouse, not of this project's code.

/** ClickHouse starts an insert when it has this much of the query and the rows. Half of a row with this message is longer. */
const START_BYTES = 1_000
const LONG_MESSAGE = 'm'.repeat(4 * START_BYTES)

const ROUNDS = 20

/** The worker that splits the batch. */
const splitter = await openTestDatabase()
/** The workers that insert the batch as a whole. */
const others = await connectAgain(splitter)
const rowInserter = new RowInserter({
  frameInserter: new FrameInserter(splitter, unwatched),
  storedRows: storedRowFinder(splitter, Date.now, unwatched),
  ...insertOptions,
})

let partitions: readonly [readonly string[], readonly string[]]
/** Rows of two days of expiry, and therefore of two partitions, alternating. */
let batch: readonly string[]
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
  const rowOf = (retentionDays: number): string =>
    makeRow({ projectId, retentionDays, receivedAtMs }, { message: LONG_MESSAGE })
  partitions = [
    [rowOf(30), rowOf(30), rowOf(30)],
    [rowOf(31), rowOf(31), rowOf(31)],
  ]
  batch = [0, 1, 2].flatMap((i) => partitions.map((rows) => rows[i] ?? ''))
}

/** Inserts the whole batch. Each insert has another query id: on a cluster, servers do not know the queries of each other. */
const insertBatch = (): Promise<void> =>
  new FrameInserter(others, unwatched).insert([compressRows(batch.join(''))], token, randomUUID())

/** Consumes the token with one row. */
const consume = (row: string | undefined): Promise<void> =>
  rowInserter.send([compressRows(row ?? '')], token, () => undefined, queryIds.consumedToken(token))

/** The ids of rows. A row that is stored twice is in the list twice. */
const idsOf = (rows: readonly (string | undefined)[]): string[] =>
  rows.map((row) => rowKey(row ?? '').id).toSorted()

async function storedIds(): Promise<string[]> {
  const query = `SELECT toString(id) AS id FROM ${logsTable} WHERE project_id = {projectId: String}`
  return (await select<{ id: string }>(splitter, query, { projectId })).map(({ id }) => id).toSorted()
}

/**
 * Starts an insert like FrameInserter, but sends the second half of the rows later. Resolves when ClickHouse runs the insert.
 *
 * @returns sends the rest of the rows, and waits until ClickHouse has confirmed the insert
 */
async function start(rows: readonly string[]): Promise<() => Promise<void>> {
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
      ...insertBlock,
      insert_deduplication_token: token,
      max_query_size: String(START_BYTES),
    },
  })
  await Promise.race([confirmed, eventually(async () => expect(await isRunning(queryId)).toBe(true))])
  return async () => {
    expect(await isRunning(queryId)).toBe(true)
    held.resolve()
    const { stream } = await confirmed
    stream.resume()
  }
}

async function isRunning(queryId: string): Promise<boolean> {
  const query = 'SELECT 1 FROM system.processes WHERE query_id = {queryId: String}'
  return (await select(splitter, query, { queryId })).length > 0
}

it('makes a later insert of the batch store only the rows of the partition where its token is not consumed', async () => {
  const [consumed, unused] = partitions
  await consume(consumed[1])
  // The first row counts, whichever rows follow.
  await consume(consumed[0])
  expect(await storedIds()).toEqual(idsOf([consumed[1]]))
  for (let times = 0; times < 2; times += 1) {
    await insertBatch()
    expect(await storedIds()).toEqual(idsOf([consumed[1], ...unused]))
  }
})

it('makes an insert that is already running store only the rows of the other partition', async () => {
  const [consumed, unused] = partitions
  const finish = await start(batch)
  await consume(consumed[0])
  expect(await storedIds()).toEqual(idsOf([consumed[0]]))
  await finish()
  expect(await storedIds()).toEqual(idsOf([consumed[0], ...unused]))
})

it('adds nothing if the batch is stored, or was stored while the consumption was running', async () => {
  const finish = await start(partitions[0].slice(0, 1))
  await insertBatch()
  await finish()
  for (const row of partitions[0]) await consume(row)
  expect(await storedIds()).toEqual(idsOf(batch))
})

it('makes every insert of the batch, later or already running, store nothing if its token is consumed in both partitions', async () => {
  const inserts = [await start(batch), await start(batch.toReversed())]
  const rows = [partitions[1][0], partitions[0][0]]
  for (const row of rows) await consume(row)
  expect(await storedIds()).toEqual(idsOf(rows))
  for (const finish of inserts) await finish()
  await insertBatch()
  expect(await storedIds()).toEqual(idsOf(rows))
})

it.each([
  { max_insert_block_size: '2' },
  { max_insert_block_size_bytes: '1' },
  { input_format_max_block_size_bytes: '1' },
  { deduplicate_insert: 'disable' },
  { deduplicate_insert: 'backward_compatible_choice', insert_deduplicate: '0' },
])('makes an insert of the batch store nothing also if the profile of its user has %j', async (settings) => {
  const limited = await connectAgain(splitter, { settings })
  const rows = partitions.map(([row]) => row)
  for (const row of rows) await consume(row)
  await new FrameInserter(limited, unwatched).insert([compressRows(batch.join(''))], token, randomUUID())
  await limited.close()
  expect(await storedIds()).toEqual(idsOf(rows))
})

it('makes an insert that ends between the consumptions store only the rows of the unused partition', async () => {
  const [first, second] = partitions
  const finish = await start(batch)
  await consume(first[0])
  await finish()
  await consume(second[0])
  expect(await storedIds()).toEqual(idsOf([first[0], ...second]))
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
