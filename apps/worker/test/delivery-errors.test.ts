import { AssertionError } from 'node:assert'
import { describe, expect, it } from 'vitest'
import { isFinal, RequeueError, UndeliverableError } from '../src/delivery-errors.ts'
import { insertErrors } from './support/chunks.ts'

describe('isFinal', () => {
  it.each([
    new RequeueError('stopping'),
    new UndeliverableError('rows are not found'),
    new TypeError('x is not a function'),
    new RangeError('invalid length'),
    new ReferenceError('x is not defined'),
    new AssertionError({ message: 'broken' }),
  ])('is true for an error that no attempt resolves: %s', (error) => {
    expect(isFinal(error)).toBe(true)
  })

  it.each([new Error('connection lost'), ...Object.values(insertErrors), 'text', undefined])(
    'is false for an error that may pass: %s',
    (error) => {
      expect(isFinal(error)).toBe(false)
    },
  )
})

it('returns chunks to the front of the queue by default', () => {
  expect(new RequeueError('stopping').end).toBe('front')
  expect(new RequeueError('rejected', 'back').end).toBe('back')
})
