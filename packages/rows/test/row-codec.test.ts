import { describe, expect, it } from 'vitest'
import { makeRowPrefix, rowAsJson, rowColumns, rowKey } from '../src/row-codec.ts'
import { ID, rowOf, stamp } from './support/shape.ts'

const expiresOn = (receivedAtMs: number, retentionDays: number): string | undefined =>
  makeRowPrefix({ ...stamp, receivedAtMs, retentionDays }).text.split('\t')[rowColumns.indexOf('expires_on')]

describe('makeRowPrefix', () => {
  it('keeps a row for the full number of days of the retention', () => {
    expect(expiresOn(Date.UTC(2026, 10, 20), 1)).toBe('2026-11-22')
    expect(expiresOn(Date.UTC(2026, 10, 20, 23, 59, 59, 999), 1)).toBe('2026-11-22')
    expect(expiresOn(Date.UTC(2026, 11, 31), 730)).toBe('2028-12-31')
  })
})

describe('rowAsJson', () => {
  it('returns undefined for a string that is not a row', () => {
    expect(rowAsJson('a\tb\n')).toBeUndefined()
  })

  it('decodes escapes in one pass', () => {
    const fields = ['demo', '', '', '', '', '', '', '', '', '', '', '\\\\n\\n\\\\\\t', '', '{}']
    expect(JSON.parse(rowAsJson(`${fields.join('\t')}\n`) ?? '')).toMatchObject({ message: '\\n\n\\\t' })
  })
})

describe('rowKey', () => {
  it('reads the columns by which a row is looked up', () => {
    expect(
      rowKey(rowOf('{"level":"info","message":"a\\tb","timestamp":"2026-11-20T22:43:01+01:00"}')),
    ).toEqual({
      projectId: 'demo',
      receivedAt: '2026-11-20 23:59:59.999',
      expiresOn: '2026-12-21',
      id: ID,
      timestamp: '2026-11-20 21:43:01.000000',
    })
  })

  it('reads missing columns as empty strings', () => {
    const missing = { receivedAt: '', expiresOn: '', id: '', timestamp: '' }
    expect(rowKey('a\n')).toEqual({ projectId: 'a', ...missing })
    expect(rowKey('')).toEqual({ projectId: '', ...missing })
  })
})
