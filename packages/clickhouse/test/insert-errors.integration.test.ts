import { Readable } from 'node:stream'
import { afterAll, describe, expect, it } from 'vitest'
import { classifyInsertError, listedCodes } from '../src/insert-errors.ts'
import { logsInsertSettings } from '../src/tables.ts'
import { openTestDatabase, select } from './test-database.ts'

const clickhouse = await openTestDatabase()
let tables = 0

afterAll(() => clickhouse.close())

/** Inserts a value into the column `a` of a new table, and returns the classification of the error. */
async function insert(columns: string, value: string): Promise<unknown> {
  tables += 1
  await clickhouse.command({
    query: `CREATE TABLE t${tables} (${columns}) ENGINE = MergeTree ORDER BY tuple()`,
  })
  try {
    const { stream } = await clickhouse.exec({
      query: `INSERT INTO t${tables} (a) FORMAT TabSeparated`,
      values: Readable.from([Buffer.from(`${value}\n`)], { objectMode: false }),
      clickhouse_settings: logsInsertSettings,
    })
    stream.resume()
    return undefined
  } catch (error) {
    return classifyInsertError(error)
  }
}

describe('a row that ClickHouse rejects is poison', () => {
  it.each([
    ['a constraint', 'a String, CONSTRAINT short CHECK length(a) < 3', 'long', 'VIOLATED_CONSTRAINT'],
    ['an enum', "a Enum8('x' = 1)", 'y', 'UNKNOWN_ELEMENT_OF_ENUM'],
    ['a decimal', 'a Decimal(3, 1)', '12345', 'ARGUMENT_OUT_OF_BOUND'],
    [
      'a computed decimal',
      'a UInt64, m Decimal32(5) MATERIALIZED toDecimal32(a, 5)',
      '999999999',
      'DECIMAL_OVERFLOW',
    ],
    [
      'a computed integer',
      "a UInt64, m UInt8 MATERIALIZED accurateCast(a, 'UInt8')",
      '999',
      'CANNOT_CONVERT_TYPE',
    ],
    ['a division', 'a UInt8, m UInt8 MATERIALIZED intDiv(1, a)', '0', 'ILLEGAL_DIVISION'],
    [
      'a condition',
      'a UInt8, m UInt8 MATERIALIZED throwIf(a = 1)',
      '1',
      'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO',
    ],
    [
      'two arrays',
      "a String, m String MATERIALIZED arrayMap((x, y) -> y, [1, 2], splitByChar(',', a))[1]",
      '1,2,3',
      'SIZES_OF_ARRAYS_DONT_MATCH',
    ],
    ['an array', 'a Array(UInt8)', 'x', 'CANNOT_READ_ARRAY_FROM_TEXT'],
    ['a long string', 'a FixedString(2)', 'abc', 'TOO_LARGE_STRING_SIZE'],
    ['a boolean', 'a Bool', 'maybe', 'CANNOT_PARSE_BOOL'],
    ['an IPv4 address', 'a IPv4', 'x', 'CANNOT_PARSE_IPV4'],
    ['an IPv6 address', 'a IPv6', 'x', 'CANNOT_PARSE_IPV6'],
    ['a UUID', 'a UUID', 'x', 'CANNOT_PARSE_UUID'],
    ['a date', 'a Date', 'x', 'CANNOT_PARSE_DATE'],
    ['a time', 'a DateTime64(3)', 'x', 'CANNOT_PARSE_DATETIME'],
    ['JSON', 'a JSON', '{x', 'INCORRECT_DATA'],
    ['a number', 'a UInt8', 'x', 'CANNOT_PARSE_INPUT_ASSERTION_FAILED'],
  ])('because of %s', async (_what, columns, value, code) => {
    expect(await insert(columns, value)).toEqual({ failure: 'poison', code })
  })
})

it('a table without a column is transient: its rows wait for the migration', async () => {
  expect(await insert('b String', 'x')).toEqual({ failure: 'transient', code: 'NO_SUCH_COLUMN_IN_TABLE' })
})

it('an argument that a function rejects is unknown: the rows or the table may be the cause', async () => {
  const columns = "a String, m String MATERIALIZED decrypt('aes-128-ecb', a, 'short key')"
  expect(await insert(columns, 'x')).toEqual({ failure: 'unknown', code: 'BAD_ARGUMENTS' })
})

it('every listed code has the name that ClickHouse gives it', async () => {
  const listed = Object.values(listedCodes).flatMap((names) =>
    Object.entries(names).map(([number, name]) => ({ number: Number(number), name })),
  )
  const query = `SELECT number, errorCodeToName(number) AS name
    FROM (SELECT toUInt32(arrayJoin({numbers: Array(UInt32)})) AS number)`
  const numbers = listed.map(({ number }) => number)
  expect(await select(clickhouse, query, { numbers })).toEqual(listed)
})
