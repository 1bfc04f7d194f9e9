import { expect, it } from 'vitest'
import { rowAsJson, rowColumns, rowKey } from '../src/row-codec.ts'
import { rowOf } from './support/row-of.ts'
import { textPrefix } from './support/text-prefix.ts'

const ID = '01a1fb4d-5bd1-74f9-83e0-56d2211cd84d'
const stamp = {
  projectId: 'demo',
  retentionDays: 30,
  receivedAtMs: Date.UTC(2026, 10, 20, 23, 59, 59, 999),
} as const

it.each([
  [Date.UTC(2026, 10, 20), 1, '2026-11-22'],
  [Date.UTC(2026, 10, 20, 23, 59, 59, 999), 1, '2026-11-22'],
  [Date.UTC(2026, 11, 31), 730, '2028-12-31'],
])('keeps a row received at %i for the full %i days of the retention', (receivedAtMs, retentionDays, day) => {
  const { text } = textPrefix({ ...stamp, receivedAtMs, retentionDays })
  expect(text.split('\t')[rowColumns.indexOf('expires_on')]).toBe(day)
})

it('decodes escapes in one pass, and no string that is not a row', () => {
  const fields = ['demo', '', '', '', '', '', '', '', '', '', '', '\\\\n\\n\\\\\\t', '', '{}']
  expect(JSON.parse(rowAsJson(`${fields.join('\t')}\n`) ?? '')).toMatchObject({ message: '\\n\n\\\t' })
  expect(rowAsJson('a\tb\n')).toBeUndefined()
})

it('reads the columns by which a row is looked up, and missing ones as empty strings', () => {
  const row = rowOf(
    { level: 'info', message: 'a\tb', timestamp: '2026-11-20T22:43:01+01:00' },
    ID,
    textPrefix(stamp),
  )
  expect(rowKey(row)).toEqual({
    projectId: 'demo',
    receivedAt: '2026-11-20 23:59:59.999',
    expiresOn: '2026-12-21',
    id: ID,
    timestamp: '2026-11-20 21:43:01.000000',
  })
  expect(rowKey('a\n')).toEqual({ projectId: 'a', receivedAt: '', expiresOn: '', id: '', timestamp: '' })
})
