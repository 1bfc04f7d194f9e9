import { expect, test } from 'vitest'
import { readLine } from '../support.ts'

test.each(['nova-api.log.1.2026-11-20_13:53:08', '/var/log/shop', 'shop.log'])(
  'the name of a file may be before the time: %s',
  (file) => {
    expect(readLine(`${file} 2026-11-20 10:00:00.123 12 INFO shop.orders done`)).toMatchObject({
      time: '2026-11-20T10:00:00.123Z',
      level: 'info',
      metadata: { file },
    })
  },
)

test('a name may be before a time with a level', () => {
  expect(readLine('shop 2026-11-20 10:00:00.123 [main] ERROR c.e.Shop - failed')).toEqual({
    time: '2026-11-20T10:00:00.123Z',
    level: 'error',
    message: 'failed',
    metadata: { thread: 'main', logger: 'c.e.Shop', context: 'shop' },
  })
})

test.each([
  ['Zigbee2MQTT:info  2026-11-20 10:00:00: started', 'info', 'started'],
  ['Zigbee2MQTT:error 2026-11-20 10:00:00: failed', 'error', 'failed'],
])('a name with a level may be before a time: %s', (text, level, message) => {
  expect(readLine(text)).toEqual({
    time: '2026-11-20T10:00:00Z',
    level,
    message,
    metadata: { context: 'Zigbee2MQTT' },
  })
})

test('the version of syslog may be before a time, without the priority', () => {
  expect(readLine('1 2026-11-20T10:00:00Z web1 shop 12 order - done')).toMatchObject({
    service: 'shop',
    message: 'done',
    metadata: { host: 'web1', pid: '12', messageId: 'order' },
  })
})

test.each([
  'Backup 2026-11-20 10:00:00 finished',
  'Next_run: 2026-11-21 10:00:00',
  'ValueError: 2026-11-20 10:00:00 is wrong',
  'shop.OrderError: 2026-11-20 10:00:00 is wrong',
  'Done. 2026-11-20 10:00:00 was the time',
])('another word before a time is part of a text: %s', (text) => {
  expect(readLine(text)).toEqual({ message: text })
})
