import { QueueFullError, QueueUnavailableError } from '@sluice/queue'
import type { LightMyRequestResponse } from 'fastify'
import { describe, expect, it } from 'vitest'
import { decodeAnswer, oneScope, postLogs } from '../protocols/otlp/otlp-api.ts'
import { freshTestApi } from '../support/shared-api.ts'
import { type TestApi } from '../support/test-api.ts'

/** More than two chunks. */
const RECORDS = 5_000
const logs = oneScope(...Array.from({ length: RECORDS }, (_, i) => ({ body: String(i) })))

const api = freshTestApi()

function codeOf({ statusCode, rawPayload }: LightMyRequestResponse): string {
  const { message = '' } = decodeAnswer(statusCode, rawPayload) as { message?: string }
  return message.split(':', 1)[0] ?? ''
}

type Add = TestApi['queue']['add']

/** Replaces new adds from the one with this number on, until the function that it returns is called. */
function replaceFrom(number: number, replacement: Add): () => void {
  const { queue } = api
  const add = queue.add.bind(queue)
  let adds = 0
  queue.add = (...args) => {
    const [, , , { records = [] } = {}] = args
    const isNew = records.some(({ name }) => !queue.records.has(name))
    adds += isNew ? 1 : 0
    return isNew && adds >= number ? replacement(...args) : add(...args)
  }
  return () => {
    queue.add = add
  }
}

function failing(error: Error): Add {
  return async () => {
    throw error
  }
}
const unavailable = failing(new QueueUnavailableError('no answer'))

/** What stops a piece after the first one, and the Retry-After that it asks for. */
const obstacles: readonly (readonly [name: string, replacement: Add, retryAfterS: string])[] = [
  ['Redis does not answer', unavailable, '1'],
  ['Redis is full', failing(new QueueFullError('full')), '5'],
  [
    'the quota of keys is used up',
    async (_id, _chunk, _ms, recorded) => (recorded?.records ?? []).map(() => 90_000),
    '90',
  ],
  // The record of a key that was used an hour ago expires a moment after the record of the first piece.
  [
    'an old record',
    async (_id, _chunk, _ms, recorded) => (recorded?.records ?? []).map(() => 'x'.repeat(58)),
    '1',
  ],
]

describe('a request of several chunks', () => {
  it.each(obstacles)(
    'is to be retried after its first part is stored, and is then stored once: %s',
    async (_name, replacement, retryAfterS) => {
      const headers = { 'idempotency-key': 'k' }
      const restore = replaceFrom(2, replacement)
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const answer = await postLogs(api, logs, headers)
        expect([answer.statusCode, codeOf(answer)]).toEqual([503, 'queue_unavailable'])
        expect(answer.headers['retry-after']).toBe(retryAfterS)
        expect(answer.body).toContain('A part of the request is stored')
        expect(api.queue.rows).toHaveLength(2_000)
        // Ends an overload.
        await api.signals.monitor.poll()
      }
      restore()
      const completed = await postLogs(api, logs, headers)
      expect(completed.statusCode).toBe(200)
      expect(completed.headers).not.toHaveProperty('idempotency-replayed')
      expect(api.queue.rows).toHaveLength(RECORDS)
      expect(new Set(api.queue.rows.map(({ message }) => message)).size).toBe(RECORDS)
    },
  )

  it.each(obstacles.slice(1, 3))(
    'is rejected with its own error if its first part is not stored: %s',
    async (_name, replacement, retryAfterS) => {
      replaceFrom(1, replacement)
      const answer = await postLogs(api, logs, { 'idempotency-key': 'k' })
      expect(codeOf(answer)).toMatch(/^(overloaded|too_many_idempotency_keys)$/)
      expect(answer.headers['retry-after']).toBe(retryAfterS)
    },
  )
})
