import { describe, expect, test } from 'vitest'
import { interpretResponse, parseRetryAfterMs } from '../../src/send/responses.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const interpret = (status: number, body: unknown, retryAfter: string | null = null) =>
  interpretResponse(status, retryAfter, typeof body === 'string' ? body : JSON.stringify(body), 3, NOW_MS)

describe('202', () => {
  test('has the number of accepted entries, and the reasons of the rejections', () => {
    const errors = [{ index: 1, path: '/level', code: 'missing', message: 'level is required' }]
    expect(interpret(202, { success: true, accepted: 2, rejected: 1, errors })).toEqual({
      kind: 'processed',
      accepted: 2,
      rejections: errors,
    })
  })

  test.each(['', '{}', 'null', '<html>', '{"accepted":1,"rejected":1}', '{"accepted":"3","rejected":0}'])(
    'without counts that add up is not from the API: %j',
    (body) => {
      expect(interpret(202, body)).toMatchObject({ kind: 'stop' })
    },
  )
})

describe('a transient status is retried', () => {
  test.each([408, 429, 500, 502, 503, 504])('%i', (status) => {
    expect(interpret(status, '<html>', '7')).toMatchObject({ kind: 'retry', retryAfterMs: 7_000 })
    expect(interpret(status, '')).toMatchObject({ kind: 'retry', retryAfterMs: undefined })
  })

  test('with the reason from the problem document', () => {
    expect(interpret(429, { title: 'Too many requests', detail: 'Too fast.' })).toMatchObject({
      reason: 'Too fast (429)',
    })
  })
})

describe('any other status stops the sending', () => {
  test.each([200, 301, 400, 403, 404, 405, 413, 415, 422])('%i', (status) => {
    expect(interpret(status, { detail: 'No.' })).toEqual({ kind: 'stop', reason: `No (${status})` })
  })

  test('and a rejected key is reported with the setting to change', () => {
    expect(interpret(401, { detail: 'Send the header.' })).toEqual({
      kind: 'stop',
      reason:
        'the API key is missing, malformed, unknown, expired or revoked (401); set SLUICE_API_KEY or pass --api-key',
    })
    expect(interpret(401, '<html>')).toMatchObject({
      reason: 'the response is not from a Sluice API (401)',
    })
  })

  test('with the invalid field in the reason', () => {
    const problem = { detail: 'Invalid.', errors: [{ path: '/logs', message: 'must be an array' }] }
    expect(interpret(400, problem)).toMatchObject({ reason: 'Invalid: /logs must be an array (400)' })
  })

  test('and a response that is not from the API is reported as such', () => {
    expect(interpret(404, '<html>')).toMatchObject({ reason: 'the response is not from a Sluice API (404)' })
  })
})

test.each([
  ['3', 3_000],
  ['0', 0],
  ['Fri, 20 Nov 2026 12:00:05 GMT', 5_000],
  ['Fri, 20 Nov 2026 11:00:00 GMT', 0],
  ['soon', undefined],
  ['', undefined],
  [null, undefined],
])('Retry-After: %s', (text, ms) => {
  expect(parseRetryAfterMs(text, NOW_MS)).toBe(ms)
})
