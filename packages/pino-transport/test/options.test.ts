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

it('passes the options of the client, and not its own', () => {
  const { client } = readOptions(
    { ...required, service: 's', queueEntriesMax: 7, whenFull: 'wait', flushTimeoutMs: 1, messageKey: 'm' },
    {},
  )
  expect(client).toEqual({ ...required, service: 's', queueEntriesMax: 7, flushOnExit: false })
})

it('has keys and levels that take precedence over the logger', () => {
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

describe('the configuration of the logger', () => {
  beforeEach(() => void vi.useFakeTimers())

  it('has the defaults of pino outside of a thread', async () => {
    expect(await receiveConfig(null, {})()).toMatchObject({
      messageKey: 'msg',
      errorKey: 'err',
      levelNames: { 60: 'fatal' },
    })
  })

  it('comes with the first message of its kind', async () => {
    const port = new EventEmitter()
    const received = receiveConfig(port, {})()
    for (const other of [undefined, null, 'x', { code: 'FLUSH' }, message]) port.emit('message', other)
    expect(await received).toEqual({
      levelNames: { 35: 'success' },
      messageKey: 'text',
      errorKey: 'error',
    })
    expect(port.listenerCount('message')).toBe(0)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is preceded by the options', async () => {
    const port = new EventEmitter()
    const received = receiveConfig(port, { messageKey: 'mine' })()
    port.emit('message', message)
    expect(await received).toMatchObject({ messageKey: 'mine', errorKey: 'error' })
  })

  it('is waited for a second, from the first line on', async () => {
    const port = new EventEmitter()
    const [first, second] = [receiveConfig(port, {}), receiveConfig(port, {})]
    await vi.advanceTimersByTimeAsync(2_000)
    const received = first()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await received).toMatchObject({ messageKey: 'msg' })
    port.emit('message', message)
    expect(await second()).toMatchObject({ messageKey: 'text' })
  })
})
