import { describe, expect, test } from 'vitest'
import { readLine } from '../support.ts'

describe('RFC 5424 without a priority', () => {
  test('has an offset', () => {
    expect(readLine('2026-11-20T10:00:00Z web1 shop 12 order [a@1 b="c"] done')).toMatchObject({
      service: 'shop',
      message: 'done',
      metadata: { host: 'web1', pid: '12', messageId: 'order', structuredData: { 'a@1': { b: 'c' } } },
    })
  })

  test.each([
    '2026-11-20 10:00:00 Copied files - 12 - done',
    '2026-11-20 10:00:00 ERROR shop 12 order - failed',
    '2026-11-20T10:00:00Z ERROR shop 12 order - failed',
    '2026-11-20T10:00:00Z shop ERROR 12 order - failed',
    '2026-11-20T10:00:00Z shop [ERROR] 12 order - failed',
  ])('is no sentence, and no layout with a level: %s', (text) => {
    expect(readLine(text).metadata ?? {}).not.toHaveProperty('messageId')
  })
})
