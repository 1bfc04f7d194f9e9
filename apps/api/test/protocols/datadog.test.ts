import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { describe, expect, it } from 'vitest'
import { sharedTestApi, storedRows } from '../support/shared-api.ts'

const api = sharedTestApi()

const send = (
  body: object | string | Buffer,
  headers: Record<string, string | undefined> = {},
  url = '/api/v2/logs',
): Promise<LightMyRequestResponse> =>
  api.post(body, { url, headers: { authorization: undefined, 'dd-api-key': api.key, ...headers } })

describe('logs', () => {
  it('are stored', async () => {
    const source = { hostname: 'h', ddsource: 'nodejs', ddtags: 'env:prod,version:1.2,flag' }
    const response = await send([
      { message: 'one', status: 'warn', timestamp: 1_763_632_800_123, service: 'shop', ...source },
      { message: 'two', status: 'OK', ddtags: 'service:cart, env:staging' },
      { message: 'three', status: 'odd', level: 'error', env: 'dev', ddtags: 'env:prod' },
      { message: 'four', status: 200 },
    ])
    expect([response.statusCode, response.body]).toEqual([202, '{}'])
    const one = { level: 'warn', timestamp: '2025-11-20 10:00:00.123000', service: 'shop', metadata: source }
    const two = { level: 'success', service: 'cart', metadata: { ddtags: 'service:cart, env:staging' } }
    const three = { level: 'error', metadata: { status: 'odd', ddtags: 'env:prod' } }
    expect(storedRows(api)).toMatchObject([
      { message: 'one', environment: 'production', ...one },
      { message: 'two', environment: 'staging', ...two },
      { message: 'three', environment: 'development', ...three },
      { message: 'four', level: 'log', metadata: { status: 200 } },
    ])
  })

  it('may have the largest values, however they are written', async () => {
    const escaped = String.raw`\u0041`.repeat(limits.messageCharactersMax)
    const blanks = ' '.repeat(200_000)
    const response = await send(`[{"message":"${escaped}","stack":"${escaped}"},{"a":${blanks}1}]`)
    expect(response.body).toBe('{}')
    expect(api.queue.rows.length).toBe(2)
  })

  it('may be one log, or none', async () => {
    for (const body of [{ message: 'one' }, {}, []]) expect((await send(body)).body).toBe('{}')
    expect(api.queue.rows.length).toBe(1)
  })

  it('have a 202 if one is stored, else a 400', async () => {
    const long = { message: 'm'.repeat(limits.messageCharactersMax + 1) }
    const partly = await send([7, { message: 'a' }, long])
    expect(partly.statusCode).toBe(202)
    expect(partly.json<{ errors: { detail: string }[] }>().errors[0]?.detail).toBe(
      '1 of 3 logs are rejected. Log 0: must be of type object.',
    )
    expect(api.queue.rows.map(({ message }) => message?.slice(0, 2))).toEqual(['a', 'mm'])
    expect((await send([7])).statusCode).toBe(400)
  })

  it.each<[string, string | Buffer, number]>([
    ['an empty body', '', 400],
    ['JSON that ends too early', '[{"message":"a"},', 400],
    ['two values', '{"message":"a"}{"message":"b"}', 400],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 400],
    ['too many logs', `[${'{"a":1},'.repeat(limits.recordsPerRequestMax)}{"a":1}]`, 413],
  ])('in %s are rejected, and nothing is stored', async (_what, body, status) => {
    const response = await send(body)
    expect(response.statusCode).toBe(status)
    expect(response.json()).toMatchObject({ errors: [{ status: String(status) }] })
    expect(api.queue.adds).toEqual([])
  })
})

it('a key is checked by /api/v1/validate, and is only read from its header', async () => {
  const validate = (key: string): Promise<LightMyRequestResponse> =>
    api.app.inject({ url: '/api/v1/validate', headers: { 'dd-api-key': key } })
  expect((await validate(api.key)).json()).toEqual({ valid: true })
  expect((await validate('x')).statusCode).toBe(401)
  const elsewhere = { 'dd-api-key': undefined, authorization: `Bearer ${api.key}` }
  expect((await send({}, elsewhere)).statusCode).toBe(401)
  const inUrl = await send({}, {}, `/api/v2/logs?dd-api-key=${api.key}`)
  expect(inUrl.body).toContain('A key in a URL ends up in logs.')
})
