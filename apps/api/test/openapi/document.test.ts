import { Validator } from '@seriousme/openapi-schema-validator'
import { entryErrorCodes, entryFields, limits } from '@sluice/schema'
import { afterAll, describe, expect, it } from 'vitest'
import { problems } from '../../src/problems.ts'
import { logsPaths } from '../../src/http-contract.ts'
import { buildTestApi } from '../support/test-api.ts'
import { Described, type DescribedContent, type Document } from './described.ts'

const api = buildTestApi()
const response = await api.app.inject('/openapi.json')
const described = new Described(response.json<Document>())
const { document } = described

afterAll(async () => {
  await api.close()
})

const schemas = document.components.schemas

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

  it('gives each operation a unique id', () => {
    const names = described.operations.map(({ operation }) => operation.operationId)
    const given = names.filter((name) => name !== undefined)
    expect(given.length).toBeGreaterThan(3)
    expect(new Set(given).size).toBe(given.length)
  })
})

describe('the resource', () => {
  it('is documented identically under each of its paths', () => {
    const [first = '', ...others] = logsPaths
    const { description: _, operationId: __, ...operation } = described.post(first)
    for (const path of others) expect(described.post(path)).toMatchObject(operation)
    expect(others).not.toEqual([])
  })

  it('documents every problem under its status, and no other', () => {
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

  it('lists the codes of invalid entries', () => {
    expect(schemas['FieldError']?.properties['code']?.enum).toEqual(Object.keys(entryErrorCodes))
  })
})

describe('the bounds', () => {
  it('are the limits', () => {
    const properties = schemas['Entry']?.properties ?? {}
    expect(Object.keys(properties)).toEqual([...entryFields])
    for (const field of ['message', 'stack', 'url', 'pathname', 'service'] as const)
      expect(properties[field]?.['maxLength']).toBe(limits[`${field}CharactersMax`])
    expect(properties['metadata']?.['maxProperties']).toBe(limits.metadataNamesMax)
    expect(schemas['Batch']?.properties['logs']?.maxItems).toBe(limits.entriesPerRequestMax)
    expect(schemas['Entries']?.maxItems).toBe(limits.entriesPerRequestMax)
    expect(schemas['BatchAccepted']?.properties['accepted']?.['maximum']).toBe(limits.entriesPerRequestMax)
    expect(schemas['Problem']?.properties['errors']?.maxItems).toBe(limits.errorsPerEntryMax)
  })

  it('are all in the description', () => {
    const rows = [...document.info.description.matchAll(/^\| .+ \| ([\d,]+) \|$/gm)].map(([, limit]) => limit)
    expect(rows).toEqual(Object.values(limits).map((limit) => limit.toLocaleString('en')))
  })
})

interface ExampleCase {
  readonly place: string
  readonly schema: object
  readonly value: unknown
}

function examplesOf(place: string, content: Readonly<Record<string, DescribedContent>> = {}): ExampleCase[] {
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

  it('that is invalid is detected', () => {
    const { schema } = described.post().requestBody?.content['application/json'] ?? { schema: {} }
    expect(described.faults(schema, { level: 'fatal', message: 'm' })).not.toEqual([])
    expect(described.faults(schema, { logs: [{ level: 'info' }] })).not.toEqual([])
  })
})
