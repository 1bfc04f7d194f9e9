import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { PinoConfigReceiver } from '../src/pino-config.ts'

const message = {
  code: 'PINO_CONFIG',
  config: { levels: { labels: { 35: 'success' } }, messageKey: 'text', errorKey: 'error' },
}
const IMMEDIATE_MS = 0
const NEVER_MS = 60_000

it('has the defaults of pino outside of a thread', async () => {
  const receiver = new PinoConfigReceiver(null, {}, NEVER_MS)
  await receiver.wait()
  expect(receiver.config).toMatchObject({ messageKey: 'msg', errorKey: 'err', levelNames: { 60: 'fatal' } })
})

it('waits for the message, and ignores others', async () => {
  const port = new EventEmitter()
  const receiver = new PinoConfigReceiver(port, {}, NEVER_MS)
  const waiting = receiver.wait()
  for (const other of [undefined, null, 'x', { code: 'FLUSH' }]) port.emit('message', other)
  expect(receiver.config.messageKey).toBe('msg')
  port.emit('message', message)
  await waiting
  expect(receiver.config).toEqual({ levelNames: { 35: 'success' }, messageKey: 'text', errorKey: 'error' })
  expect(port.listenerCount('message')).toBe(0)
})

it('uses the options before the message', () => {
  const port = new EventEmitter()
  const receiver = new PinoConfigReceiver(port, { messageKey: 'mine' }, NEVER_MS)
  port.emit('message', message)
  expect(receiver.config).toMatchObject({ messageKey: 'mine', errorKey: 'error' })
})

it('does not wait permanently', async () => {
  const receiver = new PinoConfigReceiver(new EventEmitter(), {}, IMMEDIATE_MS)
  await receiver.wait()
  expect(receiver.config.messageKey).toBe('msg')
})
