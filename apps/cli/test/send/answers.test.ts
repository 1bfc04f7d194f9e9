import { describe, expect, test } from 'vitest'
import { judgeAnswer, parseRetryAfterMs } from '../../src/send/answers.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const judge = (status: number, body: unknown, retryAfter: string | null = null) =>
  judgeAnswer(status, retryAfter, typeof body === 'string' ? body : JSON.stringify(body), 3, NOW_MS)

describe('202', () => {
  test('says what was accepted, and why the rest was not', () => {
    const errors = [{ index: 1, path: '/level', code: 'missing', message: 'level is required' }]
    expect(judge(202, { success: true, accepted: 2, rejected: 1, errors })).toEqual({
      kind: 'taken',
      accepted: 2,
      rejections: errors,
    })
  })

  test.each(['', '{}', 'null', '<html>', '{"accepted":1,"rejected":1}', '{"accepted":"3","rejected":0}'])(
    'without counts that add up is not from the API: %s',
    (body) => {
      expect(judge(202, body)).toMatchObject({ kind: 'stop' })
    },
  )
})

describe('what passes is retried', () => {
  test.each([408, 429, 500, 502, 503, 504])('%i', (status) => {
    expect(judge(status, '<html>', '7')).toMatchObject({ kind: 'retry', retryAfterMs: 7_000 })
    expect(judge(status, '')).toMatchObject({ kind: 'retry', retryAfterMs: undefined })
  })

  test('the reason is the one of the problem document', () => {
    expect(judge(429, { title: 'Too many requests', detail: 'Too fast.' })).toMatchObject({
      reason: 'Too fast (429)',
    })
  })
})

describe('what does not pass stops', () => {
  test.each([200, 301, 400, 401, 403, 404, 405, 413, 415, 422])('%i', (status) => {
    expect(judge(status, { detail: 'No.' })).toEqual({ kind: 'stop', reason: `No (${status})` })
  })

  test('fields at fault are named', () => {
    const problem = { detail: 'Invalid.', errors: [{ path: '/logs', message: 'must be an array' }] }
    expect(judge(400, problem)).toMatchObject({ reason: 'Invalid: /logs must be an array (400)' })
  })

  test('an answer of something else is told as such', () => {
    expect(judge(404, '<html>')).toMatchObject({ reason: 'the answer is not one of the API (404)' })
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
