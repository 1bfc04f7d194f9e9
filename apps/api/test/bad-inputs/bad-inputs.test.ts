import { afterAll, afterEach, expect, it } from 'vitest'
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

interface Errors {
  readonly errors: readonly { readonly index?: number; readonly path: string; readonly code: string }[]
}

it.each(badEntries)('a bad entry is rejected, alone or in a batch: %s', async (_what, json, reason) => {
  const alone = await api.post(json)
  expect(problemCode(alone)).toBe('invalid_entry')
  expect(alone.body.length).toBeLessThan(4_000)
  const batch = await api.post(`[${json}]`)
  expect(batch.statusCode).toBe(202)
  expect(batch.json()).toMatchObject({ success: true, accepted: 0, rejected: 1 })
  for (const response of [alone, batch]) {
    const [first] = response.json<Errors>().errors
    expect(`${first?.index ?? 0} ${first?.path} ${first?.code}`).toBe(`0 ${reason}`)
  }
})

it.each(badBodies)('a bad body is rejected: %s', async (_what, body, code) => {
  const response = await api.post(body)
  expect(problemCode(response)).toBe(code)
  expect(response.body.length).toBeLessThan(4_000)
})

it.each(badRequests)('a bad request is rejected: %s', async (_what, options, code) => {
  expect(problemCode(await api.post(valid, options))).toBe(code)
})

it('a valid request is still accepted after all of them', async () => {
  const response = await api.post(valid)
  expect(response.statusCode).toBe(202)
  expect(api.queue.rows).toMatchObject([{ level: 'info', message: 'm', metadata_text: '{}' }])
  api.queue.adds.length = 0
})
