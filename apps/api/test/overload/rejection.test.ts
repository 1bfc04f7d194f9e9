import { describe, expect, it } from 'vitest'
import { QueueFullError } from '@sluice/queue'
import { problemCode } from '../support/problem.ts'
import { freshTestApi } from '../support/shared-api.ts'

const entry = { level: 'info', message: 'm' }
const api = freshTestApi()

describe('an overloaded API', () => {
  it('still rejects an invalid key with 401', async () => {
    await api.signals.set('queue_depth', 90)
    expect(problemCode(await api.post(entry, { headers: { authorization: 'Bearer unknown' } }))).toBe(
      'unauthorized',
    )
    expect(api.signals.monitor.status.refused.queue_depth).toBe(0)
  })
})

it('a full Redis causes 503 for the request, and for the next one without another add', async () => {
  let adds = 0
  api.queue.add = () => {
    adds += 1
    return Promise.reject(new QueueFullError('full'))
  }
  expect(problemCode(await api.post(entry))).toBe('overloaded')
  expect(problemCode(await api.post(entry))).toBe('overloaded')
  expect(adds).toBe(1)
  expect(api.signals.monitor.status.refused.redis_memory).toBe(2)
})
