import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { entryErrorCodes } from '@sluice/schema'
import { EntryValidator } from '../src/entry-validator.ts'
import { parseJsonExactly } from '../src/json/parse.ts'
import { makeRowPrefix, rowAsJson, rowColumns } from '../src/row-codec.ts'
import { shapeRow } from '../src/shape-row.ts'
import { foldedMetadata, runs, validEntry } from './support/arbitrary-entry.ts'
import { invalidEntry, pointsInto } from './support/arbitrary-invalid.ts'
import { ID, readRow, rowOf, stamp } from './support/shape.ts'

const validator = new EntryValidator()
const prefix = makeRowPrefix(stamp)

/** Shapes the JSON of an entry as the API does. */
function shapeText(text: string): ReturnType<typeof shapeRow> | 'not an entry' {
  const entry = parseJsonExactly(text)
  return validator.isEntry(entry) ? shapeRow(entry, ID, prefix, true) : 'not an entry'
}

function rowOfValid(entry: object): string {
  const shaped = shapeText(JSON.stringify(entry))
  if (typeof shaped === 'string' || 'error' in shaped) throw new Error(JSON.stringify(shaped))
  return shaped.row
}

const texts = ['level', 'message', 'environment', 'source', 'service', 'url', 'pathname', 'stack']

describe('a row', () => {
  it('contains the columns of the server and the fields of the entry', () => {
    const sent = {
      level: 'warn',
      message: 'hello',
      environment: 'staging',
      source: 'edge',
      service: 'shop',
      url: 'https://example.com/a?b',
      pathname: '/a',
      stack: 'Error: x\n    at y',
      timestamp: '2026-11-20T23:43:01.123456+01:00',
      metadata: { a: 1 },
    }
    expect(readRow(JSON.stringify(sent))).toEqual({
      ...sent,
      metadata: undefined,
      timestamp: '2026-11-20 22:43:01.123456',
      metadata_text: '{"a":1}',
      id: ID,
      project_id: 'demo',
      received_at: '2026-11-20 23:59:59.999',
      expires_on: '2026-12-21',
    })
  })

  it('has the time of receipt if the entry has no timestamp', () => {
    expect(readRow('{"level":"info","message":"m"}')['timestamp']).toBe('2026-11-20 23:59:59.999')
  })

  it.each([...texts.slice(2), 'timestamp', 'metadata'])(
    'is the same for null as for an absent %s',
    (field) => {
      expect(readRow(`{"level":"info","message":"m","${field}":null}`)).toEqual(
        readRow('{"level":"info","message":"m"}'),
      )
    },
  )

  it.each([
    'line\nfeed',
    'carriage\rreturn\r\n',
    'separators \u2028 \u2029 \u0085',
    '"quotes" and \\ backslashes \\" \\\\n',
    'NUL \0 and others \u0001\u001f\u007f',
    '😀 grüße 日本語 \ufeff \uffff \u{10ffff}',
    '","project_id":"other"}\n{"project_id":"other',
    '</script><!--',
    "'; DROP TABLE logs; --",
    '\\u0000 \\ud83d',
    'tab\tand\ttabs \\t',
    '\\N',
    '',
  ])('is one line with all columns if its strings are %j', (text) => {
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

  it('is one line with each field of any valid entry as the client sent it, and the folded metadata', () => {
    fc.assert(
      fc.property(validEntry, (entry) => {
        const text = rowOfValid(entry)
        expect(text.indexOf('\n')).toBe(text.length - 1)
        expect(text.split('\t')).toHaveLength(rowColumns.length)
        const row = JSON.parse(rowAsJson(text) ?? '') as Record<string, unknown>
        for (const name of texts) expect(row[name]).toBe(entry[name] ?? '')
        expect(row['metadata_text']).toBe(JSON.stringify(foldedMetadata(entry)))
        expect(row['id']).toBe(ID)
      }),
      runs,
    )
  })
})

describe('an invalid entry', () => {
  it('is rejected for its error, with a path that exists in the entry', () => {
    fc.assert(
      fc.property(invalidEntry, ({ entry, path, code }) => {
        const text = JSON.stringify(entry)
        const shaped = shapeText(text)
        if (typeof shaped === 'object' && 'row' in shaped) throw new Error('the entry was accepted')
        const errors = shaped === 'not an entry' ? validator.explain(parseJsonExactly(text)) : [shaped.error]
        expect(errors).toContainEqual(expect.objectContaining({ path, code }))
        for (const error of errors) {
          expect(Object.keys(entryErrorCodes)).toContain(error.code)
          expect(pointsInto(JSON.parse(text), error.path)).toBe(true)
        }
      }),
      runs,
    )
  })
})
