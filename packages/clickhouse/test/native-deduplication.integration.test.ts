import { eventually } from '@sluice/harness'
import { compressBlock, compressedBlockOf, compressRows, insertBody, readJoined } from '@sluice/rows'
import { encodeBlock } from '@sluice/rows/testing'
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, expect, it } from 'vitest'
import {
  insertBlock,
  logsInsertBlockQuery,
  logsInsertQuery,
  logsInsertSettings,
  logsTable,
} from '../src/tables.ts'
import { connectAgain, makeRow, openTestDatabase, select } from './test-database.ts'

// What identifies an insert in the format Native is tested here. It is a property of ClickHouse, not of this project's code.
//
// ClickHouse numbers the blocks that it reads from a body. The identity of what it stores is the token, the number of the last block in it,
// and the partition. A block in the format Native is one of them, however large it is. So one block per insert has the same identity as a
// text, and as one row of the batch that consumes its token.

/** Partitions: days of expiry, as retentions. */
const retentions: ReadonlyMap<string, number> = new Map([
  ['P', 30],
  ['Q', 31],
])

/**
 * An insert: `text PQ` has two rows, `block PQ` has a block of two rows, and `block P PQ` has two blocks. With `×9` each has these rows 9
 * times. With `20kB` the rows are large.
 */
type Insert = string
type Settings = Readonly<Record<string, string | number>>

const clickhouse = await openTestDatabase()
const other = await connectAgain(clickhouse)
afterAll(() => Promise.all([clickhouse.close(), other.close()]))

/** Rows that are made once. The chunks of a block repeat them. */
const CHUNK_TIMES = 500

function bodyOf(insert: Insert, projectId: string): readonly Buffer[] {
  const [, format, words = '', count = '1', large] = /^(\w+) ([PQ ]+)(?:×(\d+))?( 20kB)?$/.exec(insert) ?? []
  const [times, receivedAtMs, message] = [Number(count), Date.now(), 'm'.repeat(large ? 20_000 : 1)]
  const chunks = Math.ceil(times / CHUNK_TIMES)
  const row = (letter: string): string =>
    makeRow({ projectId, receivedAtMs, retentionDays: retentions.get(letter) ?? 0 }, { message })
  return (
    words.match(/\w+/g)?.flatMap((letters) => {
      const rows = repeat(times / chunks, Array.from(letters, row)).flat()
      const blocks = (): Buffer[] => [
        ...insertBody(
          repeat(chunks, compressedBlockOf(compressBlock(readJoined(encodeBlock(rows)))) ?? []).flat(),
        ),
      ]
      return format === 'block' ? blocks() : [compressRows(rows.join(''))]
    }) ?? []
  )
}

const repeat = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item)

async function send(
  insert: Insert,
  body: Iterable<Buffer> | AsyncIterable<Buffer>,
  token: string,
  settings: Settings = {},
  queryId = randomUUID(),
): Promise<void> {
  const isBlock = insert.startsWith('block')
  // With another client, several inserts run at a time.
  const { stream } = await other.exec({
    query: isBlock ? logsInsertBlockQuery : logsInsertQuery,
    query_id: queryId,
    values: Readable.from(body, { objectMode: false }),
    http_headers: { 'Content-Encoding': 'zstd' },
    clickhouse_settings: {
      ...logsInsertSettings,
      ...insertBlock,
      ...settings,
      insert_deduplication_token: token,
    },
  })
  stream.resume()
}

/** The numbers of rows in P and Q. */
async function storedRows(projectId: string): Promise<string> {
  const query = `SELECT toUInt32(count()) AS rows FROM ${logsTable} WHERE project_id = {projectId: String} AND expires_on = {day: Date}`
  const counts = Array.from(retentions.values(), async (retentionDays) => {
    const [, , day] = makeRow({ projectId, retentionDays }).split('\t')
    return (await select<{ rows: number }>(clickhouse, query, { projectId, day }))[0]?.rows
  })
  return (await Promise.all(counts)).join(' ')
}

/**
 * Makes inserts with one token, and counts rows after each of them: in `block PQ → 1 1, block PPQ → 1 1`, the second one adds nothing to the
 * row in P and the row in Q.
 */
async function expectStored(steps: string, settings: Settings = {}): Promise<void> {
  const [projectId, token, found] = [randomUUID(), randomUUID(), new Array<string>()]
  for (const step of steps.split(', ')) {
    const [insert = ''] = step.split(' → ')
    await send(insert, bodyOf(insert, projectId), token, settings)
    found.push(`${insert} → ${await storedRows(projectId)}`)
  }
  expect(found.join(', ')).toBe(steps)
}

it.each([
  'block P → 1 0, block PPP → 1 0, block PPPPP → 1 0',
  'block PPP → 3 0, block P → 3 0',
  'block P → 1 0, block PQPQ → 1 2, block PQPQ → 1 2',
  'block PQ → 1 1, block PPQQ → 1 1, block Q → 1 1',
  // Workers of two versions have the batch.
  'text P → 1 0, block PQPQ → 1 2, text PQPQ → 1 2',
  'block P → 1 0, text PQPQ → 1 2, block PQPQ → 1 2',
  'block PQPQ → 2 2, text PQPQ → 2 2, text Q → 2 2',
  // More rows than ClickHouse reads as one block of text by default, and more bytes than a batch has.
  'block PPPP×300000 → 1200000 0, block P → 1200000 0',
  'block P → 1 0, block PPPP×300000 → 1 0',
  'block PPPP×1000 20kB → 4000 0, text P → 4000 0',
  'text P → 1 0, block PQPQ×1000 20kB → 1 2000',
])('ignores a block in the partitions where its token was used, however many rows it has: %s', (steps) =>
  expectStored(steps),
)

const smallBlocks = { max_insert_block_size: 1, max_insert_block_size_bytes: 1 } as const
it.each<Settings>([
  smallBlocks,
  { input_format_max_block_size_bytes: 1 },
  { min_insert_block_size_rows: 1, min_insert_block_size_bytes: 1 },
  { min_insert_block_size_rows: 0, min_insert_block_size_bytes: 0 },
  { use_strict_insert_block_limits: 1 },
  { input_format_parallel_parsing: 1, max_insert_threads: 4, max_threads: 4 },
  { max_block_size: 1, preferred_block_size_bytes: 1 },
  { insert_deduplicate: 0 },
])('divides no block with the settings %j', async (settings) => {
  await expectStored('block P → 1 0, block PQPQ → 1 2', settings)
  await expectStored('block PQPQ → 2 2, block P → 2 2, text Q → 2 2', settings)
})

it.each([
  ['a row', 'block P', '1 100'],
  ['the whole block', 'block PQPQ×50', '100 100'],
])('ignores a block that it is reading when %s is inserted with its token', async (_what, insert, stored) => {
  const [projectId, token, queryId] = [randomUUID(), randomUUID(), randomUUID()]
  const block = Buffer.concat(bodyOf('block PQPQ×50 20kB', projectId))
  const held = Promise.withResolvers<void>()
  async function* slowly(): AsyncGenerator<Buffer> {
    yield block.subarray(0, -1)
    await held.promise
    yield block.subarray(-1)
  }
  const reading = send('block', slowly(), token, { max_query_size: 1_000 }, queryId)
  const isRunning = 'SELECT 1 FROM system.processes WHERE query_id = {queryId: String}'
  await eventually(async () => expect(await select(clickhouse, isRunning, { queryId })).toHaveLength(1))
  await send(insert, bodyOf(insert, projectId), token)
  held.resolve()
  await reading
  expect(await storedRows(projectId)).toBe(stored)
})

it.each([
  'block P P P P → 4 0, block P P P P → 4 0',
  'block P → 1 0, block P P P P → 5 0',
  'block P P P P → 4 0, block P → 5 0',
  'text PPPP → 4 0, block P P P P → 8 0',
])('stores several blocks although the token was used, if there were not as many: %s', (steps) =>
  expectStored(steps),
)

it.each<[string, Settings]>([
  ['block PPP → 3 0, block P → 4 0', { deduplicate_insert: 'disable' }],
  ['block P → 1 0, block PPPP → 4 0', { ...smallBlocks, use_strict_insert_block_limits: 1 }],
  ['text PPP → 3 0, text P → 4 0', { deduplicate_insert: 'disable' }],
  ['text P → 1 0, text PPP → 4 0', { max_insert_block_size_bytes: 1 }],
  ['text P → 1 0, text PPP → 4 0', { input_format_max_block_size_bytes: 1 }],
])('stores rows although the token was used, with settings that a user must not have: %s, %j', expectStored)
