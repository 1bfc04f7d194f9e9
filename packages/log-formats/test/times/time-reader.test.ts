import { describe, expect, test } from 'vitest'
import { readLine, summaryOf } from '../lines/support.ts'

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

describe('times of other forms', () => {
  const time = '2026-11-20T10:00:00Z'
  const exact = '2026-11-20T10:00:00.123Z'

  test.each([
    ['2026 Nov 20 10:00:00 sw1 %LINK-5-UP: up', time, 'info', '%LINK-5-UP: up'],
    ['2026 Nov 20 10:00:00.123 sw1 shop[7]: started', exact, undefined, 'started'],
    ['1795168800: New connection', time, undefined, 'New connection'],
    ['INFO [11-20|10:00:00.123] Imported       number=1', exact, 'info', 'Imported       number=1'],
    ['[2026.11.20-10.00.00:123][  0]LogInit: started', exact, undefined, '[  0]LogInit: started'],
    ['[GIN] 2026/11/20 - 10:00:00 | 404 | ok', time, 'warn', '404 | ok'],
    ['20/11/2026 -- 10:00:00 - <Notice> - started', time, 'info', 'started'],
    ['ERROR:2026-11-20 10:00:00,123:failed', exact, 'error', 'failed'],
    ['(W) 2026-11-20T10:00:00 - low', time, 'warn', 'low'],
    ['<W>2026-11-20 10:00:00.123 low', exact, 'warn', 'low'],
    ['E 2026-11-20 10:00:00 failed', time, 'error', 'failed'],
    ['Nov-20-26 10:00:00 [Worker_1] blocked', time, undefined, '[Worker_1] blocked'],
    ['2026:11:20-10:00:00: failed login', time, undefined, 'failed login'],
    ['20-NOV-2026 10:00:00 ERROR failed', time, 'error', 'failed'],
    ['[#|2026-11-20T10:00:00.123Z|INFO|shop 5|started|#]', exact, 'info', 'shop 5|started|#]'],
    ['<174>1 2016-12-31T23:59:60-04:00 web1 shop 7 - - up', '2016-12-31T23:59:60-04:00', 'info', 'up'],
  ])('are read: %s', (text, timestamp, level, message) => {
    expect(summaryOf(text)).toEqual([timestamp, level, message])
  })

  test.each([
    '1234567890123 bytes sent',
    '1795168800 is the number',
    '2026 Nov was cold',
    '(A) 2026-11-20 x',
  ])('are not found in other texts: %s', (text) => {
    expect(readLine(text)).toEqual({ message: text })
  })
})
