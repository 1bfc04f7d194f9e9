import { afterAll, beforeEach } from 'vitest'
import { buildTestApi, type TestApi } from './test-api.ts'

/** One API for all tests of a file, for tests that change nothing in it but what is stored. Each begins with an empty queue. */
export function sharedTestApi(): TestApi {
  const api = buildTestApi()
  beforeEach(() => {
    api.queue.adds.length = 0
  })
  afterAll(() => api.close())
  return api
}
