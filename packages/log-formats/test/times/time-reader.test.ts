import { describe, expect, test } from 'vitest'
import { summaryOf } from '../lines/support.ts'

describe('an offset after a blank', () => {
  test.each([
    ['2026-11-20 10:00:00.123 -05:00 [ERR] failed', '2026-11-20T10:00:00.123-05:00', 'error', 'failed'],
    ['2026-11-20 10:00:00 -0500 [info]: #0 started', '2026-11-20T10:00:00-0500', 'info', '#0 started'],
    ['[2026-11-20 10:00:00 -0500] [7] [INFO] started', '2026-11-20T10:00:00-0500', 'info', 'started'],
    ['2026-11-20 10:00:00,123 -0800 | WARN | slow', '2026-11-20T10:00:00.123-0800', 'warn', 'slow'],
    ['2026-11-20 10:00:00.123 -0500 EST ERROR failed', '2026-11-20T10:00:00.123-0500', 'error', 'failed'],
    ['2026-11-20 10:00:00.123 -03 [55] ERROR:  failed', '2026-11-20T10:00:00.123-03', 'error', 'failed'],
    ['2026-11-20 10:00:00 +03 [55] LOG:  started', '2026-11-20T10:00:00+03', 'log', 'started'],
    ['2026-11-20 10:00:00 -03:192.0.2.7(5):a@b:[7]:LOG:  ok', '2026-11-20T10:00:00-03', 'log', 'ok'],
  ])('is that of the time: %s', (text, time, level, message) => {
    expect(summaryOf(text)).toEqual([time, level, message])
  })

  test.each([
    ['2026-11-20 10:00:00 - ERROR - failed', '2026-11-20T10:00:00Z', 'error', 'failed'],
    ['2026-11-20 10:00:00 -12 degrees', '2026-11-20T10:00:00Z', undefined, '-12 degrees'],
    ['2026-11-20 10:00:00 --- failed', '2026-11-20T10:00:00Z', undefined, 'failed'],
  ])('is no other number or dash: %s', (text, time, level, message) => {
    expect(summaryOf(text)).toEqual([time, level, message])
  })
})
