import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, describe, expect, it } from 'vitest'
import { problems } from '../../src/problems.ts'
import { buildTestApi } from '../support/test-api.ts'
import { Described, type Document } from './described.ts'

const api = buildTestApi()
const response = await api.app.inject('/openapi.json')
const described = new Described(response.json<Document>())

afterAll(async () => {
  await api.close()
})

describe('/openapi.json', () => {
  it('is a valid OpenAPI 3.1 document', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(response.json<Record<string, unknown>>())
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined })
    expect(validator.version).toBe('3.1')
  })

  it('has examples with the variables of the command line', () => {
    const names = new Set(response.body.match(/\$SLUICE_\w+/g))
    expect(names).toEqual(new Set(['$SLUICE_API_URL', '$SLUICE_API_KEY']))
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
