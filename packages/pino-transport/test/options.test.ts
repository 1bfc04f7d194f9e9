import { beforeEach, describe, expect, it, vi } from 'vitest'
import { readOptions, receiveConfig } from '../src/options.ts'
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

it('passes the options of the client, and those of the logger, which precede the message of pino', () => {
  const client = { ...required, service: 's', queueEntriesMax: 7 }
  const logger = { messageKey: 'm', errorKey: 'e', customLevels: { loud: 35 } }
  const settings = readOptions({ ...client, ...logger, whenFull: 'wait', flushTimeoutMs: 1 }, {})
  expect(settings.client).toEqual({ ...client, flushOnExit: false })
  const levelNames = { 30: 'info', 35: 'loud' }
  expect(settings.pinoConfig).toMatchObject({ messageKey: 'm', errorKey: 'e', levelNames })
  expect(readOptions(required, {}).pinoConfig).toEqual({})
})

const labels = { 35: 'success' }
const config = { levels: { labels }, messageKey: 'text', errorKey: 'error' }
const message = { code: 'PINO_CONFIG', config }

describe('the configuration of the logger', () => {
  beforeEach(() => void vi.useFakeTimers())

  it('has the defaults of pino outside of a thread', async () => {
    const received = receiveConfig(null, {})()
    await vi.advanceTimersByTimeAsync(0)
    expect(await received).toMatchObject({ messageKey: 'msg', errorKey: 'err', levelNames: { 60: 'fatal' } })
  })

  it('comes with the first message of its kind, and is preceded by the options', async () => {
    const port = new EventEmitter()
    const received = receiveConfig(port as never, { errorKey: 'mine' })()
    for (const other of [undefined, null, 'x', { code: 'FLUSH' }, message]) port.emit('message', other)
    expect(await received).toEqual({ levelNames: labels, messageKey: 'text', errorKey: 'mine' })
    expect(port.listenerCount('message')).toBe(0)
  })

  it('is waited for a second, from the first line on', async () => {
    const port = new EventEmitter()
    const [first, second] = [receiveConfig(port as never, {}), receiveConfig(port as never, {})]
    await vi.advanceTimersByTimeAsync(2_000)
    const received = first()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await received).toMatchObject({ messageKey: 'msg' })
    port.emit('message', message)
    expect(await second()).toMatchObject({ messageKey: 'text' })
  })
})
