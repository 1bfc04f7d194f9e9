import { describe, expect, test } from 'vitest'
import { lostWordsOf, summaryOf } from '../support.ts'

const time = '2026-11-20T10:00:00Z'

describe('a word that is a level and the name of a component', () => {
  test.each([
    '[config] ERROR',
    '[config] [ERROR]',
    '(config) ERROR',
    '[audit] [error]',
    '[system] [error]',
    '[log] [error]',
    '[trace/7f3] ERROR',
    '[debug/7f3] [main] ERROR',
    'SYSTEM ERROR',
    'AUDIT [main] ERROR',
  ])('does not win over the level after it: %s', (header) => {
    expect(summaryOf(`2026-11-20 10:00:00 ${header} failed`)).toEqual([time, 'error', 'failed'])
    expect(summaryOf(`[2026-11-20 10:00:00] ${header} failed`)).toEqual([time, 'error', 'failed'])
    expect(lostWordsOf(`2026-11-20 10:00:00 ${header} failed`)).toEqual([])
  })

  test.each([
    ['[CONFIG] [main] loaded', 'debug', 'loaded'],
    ['AUDIT user 7 logged in', 'info', 'user 7 logged in'],
    ['[Note] ready for connections', 'info', 'ready for connections'],
    ['[DEBUG/MainProcess] created', 'debug', 'created'],
    ['[success] done', 'success', 'done'],
  ])('is the level if there is no other: %s', (text, level, message) => {
    expect(summaryOf(`2026-11-20 10:00:00 ${text}`)).toEqual([time, level, message])
  })

  test.each(['[system] started', '[audit] user 7 logged in', '[config] loaded'])(
    'is no level in lower case: %s',
    (text) => {
      expect(summaryOf(`2026-11-20 10:00:00 ${text}`)).toEqual([time, undefined, text])
    },
  )
})

test.each([
  ['2026-11-20 10:00:00,123 root INFO started', '2026-11-20T10:00:00.123Z', 'info', 'started'],
  ['2026-11-20T10:00:00Z level=error msg="no"', time, 'error', 'level=error msg="no"'],
  ['[2026-11-20T10:00:00Z] level=error msg="no"', time, 'error', 'level=error msg="no"'],
  ['2026-11-20 10:00:00 [E] failed', time, 'error', 'failed'],
  ['2026/11/20 10:00:00 routers/web.go:12:Run() [I] started', time, 'info', 'started'],
  ['[2026-11-20 10:00:00] NOTICE[12][C-0a1]: chan.c:12 call', time, 'info', 'chan.c:12 call'],
  ['[Nov 20 10:00:00] WARNING[12]: chan.c:12 low', time, 'warn', 'chan.c:12 low'],
  ['2026-11-20T10:00:00Z E! [outputs.file] failed', time, 'error', '[outputs.file] failed'],
  ['2026-11-20 10:00:00: 12: error : virRun:12 : failed', time, 'error', 'virRun:12 : failed'],
  ['[2026-11-20 10:00:00 Z] information/Notification: sent', time, 'info', 'sent'],
  ['[0.123s][info][gc] pause', undefined, 'info', 'pause'],
  ['[     0.001234s]  INFO ThreadId(01) proxy: started', undefined, 'info', 'ThreadId(01) proxy: started'],
])('a level is found in the header of one program: %s', (text, timestamp, level, message) => {
  expect(summaryOf(text)).toEqual([timestamp, level, message])
  expect(lostWordsOf(text)).toEqual([])
})

test.each([
  '2026-11-20 10:00:00,123 Got ERROR from the server',
  '2026-11-20 10:00:00.123 got ERROR from the server',
  '2026-11-20 10:00:00 the level=error of it',
  '2026-11-20 10:00:00 [A] is no level',
])('a level is not found in a sentence: %s', (text) => {
  expect(summaryOf(text)[1]).toBeUndefined()
})
