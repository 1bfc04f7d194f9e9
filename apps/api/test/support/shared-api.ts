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

/** The rows that the API has stored, with their metadata as an object. */
export function storedRows(api: TestApi): Record<string, unknown>[] {
  return api.queue.rows.map(({ metadata_text: text = '', ...row }) => ({
    ...row,
    metadata: JSON.parse(text) as unknown,
  }))
}

/** The metadata of these rows. */
export function storedMetadata(api: TestApi): unknown[] {
  return storedRows(api).map(({ metadata }) => metadata)
}
