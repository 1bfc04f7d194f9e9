import { makeRowPrefix, parseTimestamp, rowColumns } from '@sluice/rows'
import { invalidTimestamps, validTimestamps } from '@sluice/rows/testing'
import { describe, expect, it } from 'vitest'
import { RowScanner } from '../src/row-scanner.ts'
import { scanText } from './support/reference.ts'

describe('the scanner, which reads common timestamps without JavaScript', () => {
  const scanner = new RowScanner({ write: () => undefined })
  const prefix = makeRowPrefix({ projectId: 'demo', retentionDays: 30, receivedAtMs: 0 })
  const scan = (text: string): string | undefined => {
    const body = JSON.stringify({ level: 'info', message: '', timestamp: text })
    return scanText(scanner, body, prefix)?.split('\t')[rowColumns.indexOf('timestamp')]
  }

  it.each([...validTimestamps, ...invalidTimestamps].map(([why, text]) => [why, text] as const))(
    'returns the same as parseTimestamp for %s',
    (_why, text) => {
      expect(scan(text)).toBe(parseTimestamp(text))
    },
  )

  it('returns the same as parseTimestamp with any character changed', () => {
    const wrong: string[] = []
    for (const common of ['2026-11-20T22:43:01', '1999-02-28T19:59:59.123456789Z', '2261-12-08T23:00:00.1']) {
      for (let at = 0; at < common.length; at += 1) {
        for (const put of ['', '0', '1', '2', '3', '6', '9', '-', ':', '.', 'T', 'Z', 'x']) {
          const text = `${common.slice(0, at)}${put}${common.slice(at + 1)}`
          if (scan(text) !== parseTimestamp(text)) wrong.push(text)
        }
      }
    }
    expect(wrong).toEqual([])
  })
})
