import { ClickHouseError } from '@clickhouse/client'
import { describe, expect, it } from 'vitest'
import { classifyInsertError, describeError } from '../src/insert-errors.ts'

const classify = (code: string, type?: string) =>
  classifyInsertError(new ClickHouseError({ message: 'm', code, ...(type !== undefined && { type }) }))

describe('an error of ClickHouse', () => {
  it.each(['225', '242', '244', '254', '285', '286', '319', '999'])(
    'about a cluster that cannot accept inserts now is transient: code %s',
    (code) => {
      expect(classify(code)).toMatchObject({ failure: 'transient' })
    },
  )

  it('about an earlier attempt that is still running is transient', () => {
    expect(classify('216')).toEqual({
      failure: 'transient',
      code: 'QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING',
    })
  })

  it.each(['8', '16', '47', '60', '115', '497', '516'])(
    'about the tables or the user is transient, since no row is at fault: code %s',
    (code) => {
      expect(classify(code)).toMatchObject({ failure: 'transient' })
    },
  )

  it('about memory is a matter of size', () => {
    expect(classify('241')).toEqual({ failure: 'too_big', code: 'MEMORY_LIMIT_EXCEEDED' })
  })

  it('with a code that is not listed is unknown, and has the name that ClickHouse gives', () => {
    expect(classify('49', 'LOGICAL_ERROR')).toEqual({ failure: 'unknown', code: 'LOGICAL_ERROR' })
    expect(classify('123456')).toEqual({ failure: 'unknown', code: '123456' })
  })
})

it('an error that is not one of ClickHouse is transient', () => {
  expect(classifyInsertError(new TypeError('m'))).toEqual({ failure: 'transient', code: 'TypeError' })
  expect(classifyInsertError('text')).toEqual({ failure: 'transient', code: 'unknown' })
})

it('describes an error of ClickHouse without its message, which may quote rows', () => {
  const error = new ClickHouseError({
    message: 'a row',
    code: '27',
    type: 'CANNOT_PARSE_INPUT_ASSERTION_FAILED',
  })
  expect(describeError(error)).toBe('ClickHouse 27 CANNOT_PARSE_INPUT_ASSERTION_FAILED')
})
