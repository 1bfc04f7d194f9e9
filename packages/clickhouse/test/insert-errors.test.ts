import { ClickHouseError } from '@clickhouse/client'
import { expect, it } from 'vitest'
import { classifyInsertError } from '../src/insert-errors.ts'

it.each(['225', '242', '244', '254', '285', '286', '319', '999'])(
  'classifies a known error of a cluster that cannot accept inserts now as transient: code %s',
  (code) => {
    const error = new ClickHouseError({ message: 'no quorum', code })
    expect(classifyInsertError(error)).toMatchObject({ failure: 'transient', isUnknown: false })
  },
)
