import { describe, expect, it } from 'vitest'
import { makeRowPrefix, rowAsJson, rowColumns } from '../src/row-codec.ts'
import { stamp } from './support/shape.ts'

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
  it('returns undefined for a text that is not a row', () => {
    expect(rowAsJson('a\tb\n')).toBeUndefined()
  })

  it('decodes escapes in one pass', () => {
    const fields = ['demo', '', '', '', '', '', '', '', '', '', '', '\\\\n\\n\\\\\\t', '', '{}']
    expect(JSON.parse(rowAsJson(`${fields.join('\t')}\n`) ?? '')).toMatchObject({ message: '\\n\n\\\t' })
  })
})
