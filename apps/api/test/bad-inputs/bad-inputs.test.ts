import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { problemCode } from '../support/problem.ts'
import { buildTestApi } from '../support/test-api.ts'
import { badBodies } from './bodies.ts'
import { badEntries } from './entries.ts'
import { badRequests } from './requests.ts'

const valid = '{"level":"info","message":"m"}'

// One API for all inputs, so that lasting effects of one input show in the next test.
const api = buildTestApi()

afterEach(() => {
  if (api.queue.adds.length > 0) throw new Error('a chunk was enqueued')
})

afterAll(async () => {
  await api.close()
})

describe('a bad entry', () => {
  it.each(badEntries)('is rejected: %s', async (_what, json, reason) => {
    const response = await api.post(json)
    expect(problemCode(response)).toBe('invalid_entry')
    const { errors } = response.json<{ errors: { path: string; code: string }[] }>()
    expect(`${errors[0]?.path} ${errors[0]?.code}`).toBe(reason)
    expect(response.body.length).toBeLessThan(4_000)
  })

  it.each(badEntries)('is rejected in a batch for the same reason: %s', async (_what, json, reason) => {
    const response = await api.post(`[${json}]`)
    expect(response.statusCode).toBe(202)
    const answer = response.json<{ errors: { index: number; path: string; code: string }[] }>()
    expect(answer).toMatchObject({ success: true, accepted: 0, rejected: 1 })
    const [first] = answer.errors
    expect(`${first?.index} ${first?.path} ${first?.code}`).toBe(`0 ${reason}`)
  })
})

describe('a bad body', () => {
  it.each(badBodies)('is rejected: %s', async (_what, body, code) => {
    const response = await api.post(body)
    expect(problemCode(response)).toBe(code)
    expect(response.body.length).toBeLessThan(4_000)
  })
})

describe('a bad request', () => {
  it.each(badRequests)('is rejected: %s', async (_what, options, code) => {
    expect(problemCode(await api.post(valid, options))).toBe(code)
  })
})

it('a valid request is still accepted after all of them', async () => {
  const response = await api.post(valid)
  expect(response.statusCode).toBe(202)
  expect(api.queue.rows).toMatchObject([{ level: 'info', message: 'm', metadata_text: '{}' }])
  api.queue.adds.length = 0
})
