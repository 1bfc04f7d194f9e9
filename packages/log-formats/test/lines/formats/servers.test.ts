import { expect, test } from 'vitest'
import { readLine } from '../support.ts'

const time = '2026-11-20T10:00:00.123Z'

test('Spring Boot with Sleuth has application, trace and span before the process id', () => {
  expect(readLine('2026-11-20 10:00:00.123 ERROR [shop,5f3,9a1] 1 --- [main] c.e.Shop : failed')).toEqual({
    time,
    level: 'error',
    service: 'shop',
    message: 'failed',
    metadata: { trace: '5f3', span: '9a1', pid: '1', thread: 'main', logger: 'c.e.Shop' },
  })
  expect(readLine('2026-11-20 10:00:00.123  WARN [,,] 1 --- [main] c.e.Shop : low')).toEqual({
    time,
    level: 'warn',
    message: 'low',
    metadata: { pid: '1', thread: 'main', logger: 'c.e.Shop' },
  })
})

test.each(['ERROR', 'error'])('a level where syslog has the program is no program: %s', (word) => {
  expect(readLine(`2026-11-20T10:00:00.123+01:00 shop ${word}: failed`)).toEqual({
    time: '2026-11-20T10:00:00.123+01:00',
    level: 'error',
    message: 'failed',
    metadata: { logger: 'shop' },
  })
})
