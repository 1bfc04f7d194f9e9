import type { HttpConnection, HttpResponse } from '@sluice/harness'
import { afterAll, afterEach, beforeEach, expect, vi } from 'vitest'
import { buildTestApi, type TestApi, type TestApiOptions } from './test-api.ts'

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

/** A new API for each test of a file, always as the same object. */
export function freshTestApi(options?: TestApiOptions): TestApi {
  const api = {} as TestApi
  beforeEach(() => void buildTestApi(options, api))
  afterEach(() => api.close())
  return api
}

/** Replaces the API of a test by one with other options. */
export async function rebuild(api: TestApi, options: TestApiOptions): Promise<void> {
  await api.close()
  buildTestApi(options, api)
}

/** Waits until these are the statuses of all responses on the connection. @returns the responses */
export async function expectResponses(
  connection: HttpConnection,
  ...statuses: number[]
): Promise<HttpResponse[]> {
  await expect.poll(() => connection.responses.map(({ status }) => status)).toEqual(statuses)
  return connection.responses
}

/** Sends a request on a connection of its own. @returns its response */
export async function exchange(api: TestApi, request: string): Promise<HttpResponse> {
  const connection = await api.connect()
  connection.write(request)
  return vi.waitUntil(() => connection.responses[0])
}

/** The code of the problem document in a raw response. */
export const codeOf = ({ body }: { readonly body: string }): unknown =>
  (JSON.parse(body) as { code?: unknown }).code

/** The number of connections that the server has open. */
export function openConnections({ app }: TestApi): Promise<number> {
  return new Promise((resolve, reject) =>
    app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  )
}
