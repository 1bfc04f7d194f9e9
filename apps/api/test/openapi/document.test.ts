import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, describe, expect, it } from 'vitest'
import { problems } from '../../src/problems.ts'
import { buildTestApi } from '../support/test-api.ts'
import { Described, type DescribedContent, type Document } from './described.ts'

const api = buildTestApi()
const response = await api.app.inject('/openapi.json')
const described = new Described(response.json<Document>())
const { document } = described

afterAll(async () => {
  await api.close()
})

describe('/openapi.json', () => {
  it('is served as JSON without a key, and does not change', async () => {
    expect(response.statusCode).toBe(200)
    expect(response.headers['content-type']).toMatch(/^application\/json/)
    expect((await api.app.inject('/openapi.json')).body).toBe(response.body)
  })

  it('is a valid OpenAPI 3.1 document', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(response.json<Record<string, unknown>>())
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined })
    expect(validator.version).toBe('3.1')
  })

  it('has no broken references', () => {
    for (const [, pointer = ''] of response.body.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      let found: unknown = document
      for (const key of pointer.split('/')) found = (found as Record<string, unknown> | undefined)?.[key]
      expect(found).toBeDefined()
    }
  })
})

it('every problem is documented under its status, and no other', () => {
  const documented = new Map<string, Set<number>>()
  for (const { operation } of described.operations) {
    for (const [status, { content = {}, description }] of Object.entries(operation.responses)) {
      for (const [, code = ''] of description.matchAll(/^- `(\w+)`/gm)) {
        documented.set(code, (documented.get(code) ?? new Set()).add(Number(status)))
        const { schema = {}, example } = content['application/problem+json'] ?? {}
        expect(described.faults(schema, { ...(example as object), code })).toEqual([])
        expect(described.faults(schema, { ...(example as object), code: 'other' })).not.toEqual([])
        expect(described.faults(schema, { ...(example as object), status: 299 })).not.toEqual([])
      }
    }
  }
  const expected = Object.entries(problems).map(([code, { status }]) => [code, new Set([status])] as const)
  expect(documented).toEqual(new Map(expected))
})

function examplesOf(place: string, content: Readonly<Record<string, DescribedContent>> = {}) {
  return Object.entries(content).flatMap(([type, { schema, example, examples = {} }]) => {
    const values = Object.values(examples).map(({ value }) => value)
    const all = example === undefined ? values : [...values, example]
    return all.map((value, index) => ({ place: `${place}, ${type}, ${index}`, schema, value }))
  })
}

const bodies = described.operations.flatMap(({ name, operation }) =>
  examplesOf(name, operation.requestBody?.content),
)
const answers = described.operations.flatMap(({ name, operation }) =>
  Object.entries(operation.responses).flatMap(([status, { content }]) =>
    examplesOf(`${name}, ${status}`, content),
  ),
)
const { parameters = [], responses } = described.post()
const headers = [
  ...parameters.map(({ name, schema, example }) => ({ place: `request: ${name}`, schema, value: example })),
  ...Object.values(responses).flatMap((each) =>
    Object.entries(each.headers).map(([place, { schema }]) => ({
      place,
      schema,
      value: schema.examples?.[0],
    })),
  ),
]

describe('an example', () => {
  it('exists for each header, and for bodies and responses', () => {
    expect([bodies.length, answers.length, headers.length].every((count) => count > 9)).toBe(true)
    for (const { value } of headers) expect(value).toBeDefined()
  })

  it('is valid, and an example of a response has no other fields', () => {
    for (const { place, schema, value } of [...bodies, ...headers]) {
      expect([place, described.faults(schema, value)]).toEqual([place, []])
    }
    for (const { place, schema, value } of answers) {
      expect([place, described.faultsOfAnswer(schema, value)]).toEqual([place, []])
    }
  })
})
