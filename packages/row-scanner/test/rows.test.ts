import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { entryErrorCodes } from '@sluice/schema'
import { rowAsJson, rowColumns } from '@sluice/rows'
import { foldedMetadata, invalidEntry, pointsInto, validEntry } from '@sluice/rows/testing'
import { readRow, rowOf, scanEntry } from './support/entries.ts'
import { ID } from './support/reference.ts'

const texts = ['level', 'message', 'environment', 'source', 'service', 'url', 'pathname', 'stack']

it('a row without a timestamp has the time of receipt', () => {
  for (const more of ['', ',"timestamp":null'])
    expect(readRow(`{"level":"info","message":"m"${more}}`)['timestamp']).toBe('2026-11-20 23:59:59.999000')
})

it.each([
  'separators \r\n \u2028 \u2029 \u0085',
  '"quotes" and \\ backslashes \\" \\\\n',
  'NUL \0 and others \u0001\u001f\u007f',
  '","project_id":"other"}\n{"project_id":"other',
  '\\u0000 \\ud83d',
  'tab\tand\ttabs \\t',
  '\\N',
  '',
])('a row is one line with all columns if its strings are %j', (text) => {
  const sent = { level: 'info', message: text, service: text, metadata: { [text]: [text] }, [text]: text }
  const row = rowOf(JSON.stringify(sent))
  expect(row.indexOf('\n')).toBe(row.length - 1)
  expect(row.split('\t')).toHaveLength(rowColumns.length)
  expect(readRow(JSON.stringify(sent))).toMatchObject({
    message: text,
    service: text,
    project_id: 'demo',
    metadata_text: JSON.stringify({ [text]: [text] }),
  })
})

it('a row is one line with each field of any valid entry as the client sent it, and the folded metadata', () => {
  fc.assert(
    fc.property(validEntry, (entry) => {
      const text = rowOf(JSON.stringify(entry))
      expect(text.indexOf('\n')).toBe(text.length - 1)
      expect(text.split('\t')).toHaveLength(rowColumns.length)
      const row = JSON.parse(rowAsJson(text) ?? '') as Record<string, unknown>
      for (const name of texts) expect(row[name]).toBe(entry[name] ?? '')
      expect(row['metadata_text']).toBe(foldedMetadata(entry))
      expect(row['id']).toBe(ID)
    }),
    runsOf(500),
  )
})

it('an invalid entry is rejected for its error, with a path that exists in the entry', () => {
  fc.assert(
    fc.property(invalidEntry, ({ entry, path, code }) => {
      const text = JSON.stringify(entry)
      const { errors } = scanEntry(text)
      expect(errors).toContainEqual(expect.objectContaining({ path, code }))
      for (const error of errors) {
        expect(Object.keys(entryErrorCodes)).toContain(error.code)
        expect(pointsInto(JSON.parse(text), error.path)).toBe(true)
      }
    }),
    runsOf(500),
  )
})
