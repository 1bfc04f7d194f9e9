import { makeRowPrefix, parseTimestamp, rowColumns } from '@sluice/rows'
import { invalidTimestamps, validTimestamps } from '@sluice/rows/testing'
import { expect, it } from 'vitest'
import { RowScanner } from '../src/row-scanner.ts'
import { scanText } from './support/reference.ts'

const scanner = new RowScanner({ write: () => undefined })
const prefix = makeRowPrefix({ projectId: 'demo', retentionDays: 30, receivedAtMs: 0 })
const scan = (text: string): string | undefined => {
  const body = JSON.stringify({ level: 'info', message: '', timestamp: text })
  return scanText(scanner, body, prefix)?.split('\t')[rowColumns.indexOf('timestamp')]
}

it('the scanner, which reads common timestamps without JavaScript, returns the same as parseTimestamp', () => {
  const texts = [...validTimestamps, ...invalidTimestamps].map(([, text]) => text)
  for (const common of ['2026-11-20T22:43:01', '1999-02-28T19:59:59.123456789Z', '2261-12-08T23:00:00.1'])
    for (let at = 0; at < common.length; at += 1)
      for (const put of ['', '0', '1', '2', '3', '6', '9', '-', ':', '.', 'T', 'Z', 'x'])
        texts.push(`${common.slice(0, at)}${put}${common.slice(at + 1)}`)
  expect(texts.filter((text) => scan(text) !== parseTimestamp(text))).toEqual([])
})
