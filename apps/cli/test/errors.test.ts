import { describe, expect, test } from 'vitest'
import { describeNetworkError, isNeverConnected } from '../src/errors.ts'

const withCode = (code: string): Error =>
  Object.assign(new Error(`connect ${code}`), { code, syscall: 'connect' })

describe('describeNetworkError', () => {
  test.each([
    ['a refused connection', withCode('ECONNREFUSED'), 'refuses the connection'],
    [
      'one that fetch wraps',
      new TypeError('fetch failed', { cause: withCode('ENOTFOUND') }),
      'has a host name that cannot be resolved',
    ],
    [
      'one for each address',
      new AggregateError([withCode('ECONNREFUSED'), withCode('EHOSTUNREACH')]),
      'refuses the connection',
    ],
    ['a deadline', new DOMException('over', 'TimeoutError'), 'did not answer in time'],
    ['any other system call', withCode('EADDRNOTAVAIL'), 'cannot be talked to (connect EADDRNOTAVAIL)'],
    [
      'a certificate',
      new TypeError('fetch failed', {
        cause: Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }),
      }),
      'cannot be talked to (self-signed certificate)',
    ],
  ])('describes %s', (_name, error, description) => {
    expect(describeNetworkError(error)).toBe(description)
  })

  test('describes what else fetch cannot do', () => {
    const error = new TypeError('fetch failed', { cause: new Error('bad port') })
    expect(describeNetworkError(error)).toBe('cannot be talked to (bad port)')
    expect(isNeverConnected(error)).toBe(true)
  })

  test('knows nothing of errors in programs', () => {
    expect(describeNetworkError(new TypeError('x is not a function'))).toBeUndefined()
    expect(describeNetworkError('text')).toBeUndefined()
  })
})

test('only a request that never left was certainly not taken', () => {
  expect(isNeverConnected(withCode('ECONNREFUSED'))).toBe(true)
  expect(isNeverConnected(withCode('ECONNRESET'))).toBe(false)
  expect(isNeverConnected(new TypeError('x is not a function'))).toBe(false)
})
