import { describe, expect, test } from 'vitest'
import { lostWordsOf, readLine } from '../support.ts'

const time = '2026-11-20T10:00:00Z'

describe('the prefix of PostgreSQL', () => {
  test.each([
    [
      'UTC [147] 192.0.2.7 shop@orders FATAL:  no',
      { pid: '147', user: 'shop', database: 'orders', client: '192.0.2.7', originalLevel: 'FATAL' },
    ],
    [
      'UTC [147]: [3-1] user=shop,db=orders,app=psql,client=192.0.2.7 ERROR:  no',
      {
        pid: '147',
        user: 'shop',
        database: 'orders',
        application: 'psql',
        client: '192.0.2.7',
        prefix: '[3-1]',
      },
    ],
    [
      'UTC [147-3] user=shop,db=orders,app=Report of orders,client=192.0.2.7(51423) ERROR:  no',
      {
        pid: '147',
        sessionLine: '3',
        user: 'shop',
        database: 'orders',
        application: 'Report of orders',
        client: '192.0.2.7',
        clientPort: '51423',
      },
    ],
    [
      'UTC:192.0.2.7(51423):shop@orders:[147]:ERROR:  no',
      { pid: '147', user: 'shop', database: 'orders', client: '192.0.2.7', clientPort: '51423' },
    ],
    ['UTC [147] [unknown]@[unknown] ERROR:  no', { pid: '147', prefix: '[unknown]@[unknown]' }],
    ['UTC [147] 5f3a.1b 2/7 ERROR:  no', { pid: '147', prefix: '5f3a.1b 2/7' }],
  ])('is kept: %s', (text, metadata) => {
    expect(readLine(`2026-11-20 10:00:00 ${text}`)).toEqual({ time, level: 'error', message: 'no', metadata })
    expect(lostWordsOf(`2026-11-20 10:00:00 ${text}`)).toEqual([])
  })
})

test('the verbosity of a debug message of MongoDB is kept', () => {
  expect(readLine('2026-11-20T10:00:00.000+0000 D2 NETWORK  [conn7] waiting')).toMatchObject({
    level: 'debug',
    metadata: { originalLevel: 'D2', logger: 'NETWORK', thread: 'conn7' },
  })
})
