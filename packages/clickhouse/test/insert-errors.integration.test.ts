import { Readable } from 'node:stream'
import { afterAll, expect, it } from 'vitest'
import { classifyInsertError, listedCodes } from '../src/insert-errors.ts'
import { logsInsertSettings } from '../src/tables.ts'
import { openTestDatabase, select } from './test-database.ts'

const clickhouse = await openTestDatabase()
let tables = 0

afterAll(() => clickhouse.close())

it.each([
  ['a constraint', 'a String, CONSTRAINT short CHECK length(a) < 3', 'long', 'poison', 'VIOLATED_CONSTRAINT'],
  ['an enum', "a Enum8('x' = 1)", 'y', 'poison', 'UNKNOWN_ELEMENT_OF_ENUM'],
  ['a decimal', 'a Decimal(3, 1)', '12345', 'poison', 'ARGUMENT_OUT_OF_BOUND'],
  ['a division', 'a UInt8, m UInt8 MATERIALIZED intDiv(1, a)', '0', 'poison', 'ILLEGAL_DIVISION'],
  ['an array', 'a Array(UInt8)', 'x', 'poison', 'CANNOT_READ_ARRAY_FROM_TEXT'],
  ['a time', 'a DateTime64(3)', 'x', 'poison', 'CANNOT_PARSE_DATETIME'],
  ['JSON', 'a JSON', '{x', 'poison', 'INCORRECT_DATA'],
  ['a number', 'a UInt8', 'x', 'poison', 'CANNOT_PARSE_INPUT_ASSERTION_FAILED'],
  // Its rows wait for the migration.
  ['a table without the column', 'b String', 'x', 'transient', 'NO_SUCH_COLUMN_IN_TABLE'],
  // The row or the table may be the cause.
  [
    'a function',
    "a String, m String MATERIALIZED decrypt('aes-128-ecb', a, 'k')",
    'x',
    'unknown',
    'BAD_ARGUMENTS',
  ],
])('an insert that ClickHouse rejects because of %s', async (_what, columns, value, failure, code) => {
  tables += 1
  await clickhouse.command({
    query: `CREATE TABLE t${tables} (${columns}) ENGINE = MergeTree ORDER BY tuple()`,
  })
  const insert = clickhouse.exec({
    query: `INSERT INTO t${tables} (a) FORMAT TabSeparated`,
    values: Readable.from([Buffer.from(`${value}\n`)], { objectMode: false }),
    clickhouse_settings: logsInsertSettings,
  })
  expect(classifyInsertError(await insert.catch((error: unknown) => error))).toEqual({ failure, code })
})

it('every listed code has the name that ClickHouse gives it', async () => {
  const listed = Array.from(listedCodes, ([number, { code: name }]) => ({ number: Number(number), name }))
  const query = `SELECT number, errorCodeToName(number) AS name
    FROM (SELECT toUInt32(arrayJoin({numbers: Array(UInt32)})) AS number)`
  const numbers = listed.map(({ number }) => number)
  expect(await select(clickhouse, query, { numbers })).toEqual(listed)
})
