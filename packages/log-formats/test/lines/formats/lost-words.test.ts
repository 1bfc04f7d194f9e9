import { expect, test } from 'vitest'
import { lostWordsOf, readLine } from '../support.ts'

test.each([
  [
    '[Fri Nov 20 10:00:00 2026] [error] [client 192.0.2.7:51423] [client 192.0.2.8] denied',
    { client: '192.0.2.7:51423', client_2: '192.0.2.8' },
  ],
  ['[20-Nov-2026 10:00:00 UTC] PHP Parse error:  unexpected end', { originalLevel: 'Parse error' }],
  [
    '2026-11-20 10:00:00.123+0100 0x1a2b Default 0x77aa 123 5 kernel: (disk) slow',
    { pid: '123', thread: '0x1a2b', activity: '0x77aa', timeToLive: '5', type: 'Default' },
  ],
])('what the prefix says in addition is kept: %s', (text, metadata) => {
  expect(readLine(text).metadata).toEqual(metadata)
  expect(lostWordsOf(text)).toEqual([])
})
