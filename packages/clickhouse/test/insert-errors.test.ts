import { ClickHouseError } from '@clickhouse/client'
import { expect, it } from 'vitest'
import { classifyInsertError, describeError } from '../src/insert-errors.ts'

const errorOf = (code: string, type?: string): ClickHouseError =>
  new ClickHouseError({ message: 'a row', code, ...(type !== undefined && { type }) })

it.each([
  ['a cluster that cannot accept inserts now', errorOf('285'), 'transient', 'TOO_FEW_LIVE_REPLICAS'],
  ['a running attempt', errorOf('216'), 'transient', 'QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING'],
  ['the tables or the user', errorOf('497'), 'transient', 'ACCESS_DENIED'],
  ['memory', errorOf('241'), 'too_big', 'MEMORY_LIMIT_EXCEEDED'],
  ['something that is not listed', errorOf('49', 'LOGICAL_ERROR'), 'unknown', 'LOGICAL_ERROR'],
  ['something without a name', errorOf('123456'), 'unknown', '123456'],
  ['a connection', new TypeError('m'), 'transient', 'TypeError'],
])('an error about %s is classified', (_what, error, failure, code) => {
  expect(classifyInsertError(error)).toEqual({ failure, code })
})

it.each([
  ['reserves no space', errorOf('243', 'NOT_ENOUGH_SPACE')],
  [
    'cannot write',
    new ClickHouseError({
      code: '75',
      type: 'CANNOT_WRITE_TO_FILE_DESCRIPTOR',
      message: 'Cannot write to file /data/x.bin: , errno: 28, strerror: No space left on device.',
    }),
  ],
])('a full disk is called one when ClickHouse %s', (_what, error) => {
  expect(classifyInsertError(error).failure).toBe('transient')
  expect(describeError(error)).toBe('the disk of ClickHouse is full (NOT_ENOUGH_SPACE)')
})

it('describes an error of ClickHouse without its message, which may quote rows', () => {
  expect(describeError(errorOf('27', 'INCORRECT_DATA'))).toBe('ClickHouse 27 INCORRECT_DATA')
})
