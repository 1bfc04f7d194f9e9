import { expect, it } from 'vitest'
import { readOptions, PinoConfigReceiver } from '../src/options.ts'
import { EventEmitter } from 'node:events'

const required = { url: 'http://a', apiKey: 'k' }

it('takes address and key from the environment if they are no options', () => {
  const environment = { SLUICE_API_URL: 'http://b', SLUICE_API_KEY: 'e' }
  expect(readOptions({}, environment).client).toMatchObject({ url: 'http://b', apiKey: 'e' })
  expect(readOptions(required, environment).client).toMatchObject(required)
})

it.each([
  [{}, {}, /SLUICE_API_URL/],
  [{ url: '' }, {}, /SLUICE_API_URL/],
  [{ url: 'http://a' }, { SLUICE_API_KEY: '' }, /SLUICE_API_KEY/],
  [{ ...required, flushTimeoutMs: 10_000 }, {}, /from 0 to 9000/],
  [{ ...required, flushTimeoutMs: 1.5 }, {}, /flushTimeoutMs/],
  [{ ...required, whenFull: 'block' as 'wait' }, {}, /drop, wait/],
])('rejects %j with the environment %j', (options, environment, message) => {
  expect(() => readOptions(options, environment)).toThrow(message)
})

it('passes the options of the client, and not its own', () => {
  const { client } = readOptions(
    { ...required, service: 's', queueEntriesMax: 7, whenFull: 'wait', flushTimeoutMs: 1, messageKey: 'm' },
    {},
  )
  expect(client).toEqual({ ...required, service: 's', queueEntriesMax: 7, flushOnExit: false })
})

it('has keys and levels that precede those of the logger', () => {
  expect(readOptions(required, {}).pinoConfig).toEqual({})
  const { pinoConfig } = readOptions(
    { ...required, messageKey: 'm', errorKey: 'e', customLevels: { loud: 35 } },
    {},
  )
  expect(pinoConfig).toMatchObject({ messageKey: 'm', errorKey: 'e', levelNames: { 30: 'info', 35: 'loud' } })
})

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
