import { describe, expect, test } from 'vitest'
import { describeNetworkError, wasNeverSent } from '../src/errors.ts'

const withCode = (code: string): Error =>
  Object.assign(new Error(`connect ${code}`), { code, syscall: 'connect' })

describe('describeNetworkError', () => {
  test.each([
    ['a refused connection', withCode('ECONNREFUSED'), 'refused the connection'],
    [
      'an error wrapped by fetch',
      new TypeError('fetch failed', { cause: withCode('ENOTFOUND') }),
      'has a host name that cannot be resolved',
    ],
    [
      'one error for each address',
      new AggregateError([withCode('ECONNREFUSED'), withCode('EHOSTUNREACH')]),
      'refused the connection',
    ],
    ['a deadline', new DOMException('over', 'TimeoutError'), 'did not respond in time'],
    ['any other failed system call', withCode('EADDRNOTAVAIL'), 'is unreachable (connect EADDRNOTAVAIL)'],
    [
      'an untrusted certificate',
      new TypeError('fetch failed', {
        cause: Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }),
      }),
      'is unreachable (self-signed certificate)',
    ],
  ])('describes %s', (_name, error, description) => {
    expect(describeNetworkError(error)).toBe(description)
  })

  test('describes any other failure of fetch', () => {
    const error = new TypeError('fetch failed', { cause: new Error('bad port') })
    expect(describeNetworkError(error)).toBe('is unreachable (bad port)')
    expect(wasNeverSent(error)).toBe(true)
  })

  test('does not describe programming errors', () => {
    expect(describeNetworkError(new TypeError('x is not a function'))).toBeUndefined()
    expect(describeNetworkError('text')).toBeUndefined()
  })
})

test('a request was never sent only if the connection was not established', () => {
  expect(wasNeverSent(withCode('ECONNREFUSED'))).toBe(true)
  expect(wasNeverSent(withCode('ECONNRESET'))).toBe(false)
  expect(wasNeverSent(new TypeError('x is not a function'))).toBe(false)
})
