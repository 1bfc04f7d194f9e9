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
