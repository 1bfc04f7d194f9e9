import { describe, expect, test } from 'vitest'
import { describeNetworkError, wasNeverSent } from '../../src/delivery/network-error.ts'

const coded = (message: string, code: string): Error => Object.assign(new Error(message), { code })

describe('a request was certainly not sent', () => {
  test.each<[string, Error]>([
    [
      'in Node',
      new TypeError('fetch failed', { cause: coded('connect ECONNREFUSED 127.0.0.1:1', 'ECONNREFUSED') }),
    ],
    [
      'to any address of a host',
      new TypeError('fetch failed', {
        cause: new AggregateError([coded('a', 'ECONNREFUSED'), coded('b', 'ENETUNREACH')]),
      }),
    ],
    ['in Bun', coded('Unable to connect.', 'ECONNREFUSED')],
    [
      'in Deno',
      new TypeError('fetch failed', {
        cause: new Error(
          'error sending request for url (http://a/): client error (Connect): tcp connect error',
        ),
      }),
    ],
  ])('%s', (_name, error) => {
    expect(wasNeverSent(error)).toBe(true)
  })
})

describe('a request may have been sent', () => {
  test.each<[string, unknown]>([
    ['after a reset', new TypeError('fetch failed', { cause: coded('read ECONNRESET', 'ECONNRESET') })],
    ['in a browser, which tells nothing', new TypeError('Failed to fetch')],
    [
      'to one of several addresses',
      new AggregateError([coded('a', 'ECONNREFUSED'), coded('b', 'ETIMEDOUT')]),
    ],
    ['without an address', new AggregateError([])],
    ['after something that is no error', 'no'],
    ['after nothing', undefined],
  ])('%s', (_name, error) => {
    expect(wasNeverSent(error)).toBe(false)
  })
})

test.each<[unknown, string]>([
  [new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') }), 'connect ECONNREFUSED'],
  [
    new TypeError('fetch failed', { cause: new AggregateError([new Error('first'), new Error('second')]) }),
    'first',
  ],
  [new TypeError('Failed to fetch'), 'Failed to fetch'],
  [new RangeError(''), 'RangeError'],
  ['text', 'text'],
])('%s is described by its innermost cause', (error, text) => {
  expect(describeNetworkError(error)).toBe(text)
})
