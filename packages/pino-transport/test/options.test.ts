import { expect, it } from 'vitest'
import { readOptions } from '../src/options.ts'

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
