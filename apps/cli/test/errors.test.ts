import { expect, test } from 'vitest'
import { describeNetworkError, wasNeverSent } from '../src/errors.ts'

const withCode = (code: string): Error =>
  Object.assign(new Error(`connect ${code}`), { code, syscall: 'connect' })
const fetchError = (cause: Error): Error => new TypeError('fetch failed', { cause })
const refused = withCode('ECONNREFUSED')

test.each([
  ['a refused connection', refused, 'refused the connection', true],
  ['a lost connection', withCode('ECONNRESET'), 'closed the connection', false],
  ['an error of fetch', fetchError(withCode('ENOTFOUND')), 'has a host name that cannot be resolved', true],
  ['addresses', new AggregateError([refused, withCode('EHOSTUNREACH')]), 'refused the connection', true],
  ['a deadline', new DOMException('over', 'TimeoutError'), 'did not respond in time', false],
  ['a system call', withCode('EADDRNOTAVAIL'), 'is unreachable (connect EADDRNOTAVAIL)', true],
  ['any other error of fetch', fetchError(new Error('bad port')), 'is unreachable (bad port)', true],
  ['a programming error', new TypeError('x is not a function'), undefined, false],
  ['a string', 'text', undefined, false],
])('%s is described, and whether a request was never sent', (_name, error, description, neverSent) => {
  expect(describeNetworkError(error)).toBe(description)
  expect(wasNeverSent(error)).toBe(neverSent)
})
