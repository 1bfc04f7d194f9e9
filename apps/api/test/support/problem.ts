import type { LightMyRequestResponse } from 'fastify'
import { expect } from 'vitest'
import { type ProblemCode, problems } from '../../src/problems.ts'

/** The code of a problem document. Asserts that the document is complete and agrees with its status and headers. */
export function problemCode({ statusCode, headers, body }: LightMyRequestResponse): ProblemCode {
  expect(headers['content-type']).toMatch(/^application\/problem\+json(;|$)/)
  const document = JSON.parse(body) as Record<string, unknown>
  const code = document['code'] as ProblemCode
  expect(Object.keys(problems)).toContain(code)
  const { status, title } = problems[code]
  expect(statusCode).toBe(status)
  expect(document).toMatchObject({
    type: `urn:sluice:problem:${code}`,
    title,
    status,
    detail: expect.stringMatching(/./),
    requestId: headers['x-request-id'],
  })
  expect(headers['x-request-id']).toMatch(/^[!-~]{1,128}$/)
  const names = ['code', 'detail', 'errors', 'requestId', 'status', 'title', 'type']
  expect(names).toEqual(expect.arrayContaining(Object.keys(document)))
  return code
}
