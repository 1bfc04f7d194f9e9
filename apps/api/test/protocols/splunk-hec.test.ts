import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { describe, expect, it } from 'vitest'
import { sharedTestApi, storedMetadata, storedRows } from '../support/shared-api.ts'

const api = sharedTestApi()

/** @param path after `/services/collector` */
const send = (
  body: string | Buffer,
  path = '',
  headers: Readonly<Record<string, string | undefined>> = {},
): Promise<LightMyRequestResponse> =>
  api.post(body, {
    url: `/services/collector${path}`,
    headers: { 'content-type': undefined, authorization: `Splunk ${api.key}`, ...headers },
  })

const concatenated = (...events: readonly unknown[]): string =>
  events.map((event) => JSON.stringify(event)).join('')

const success = '{"text":"Success","code":0}'

describe('events', () => {
  it.each(['', '/event', '/event/1.0'])('are stored from /services/collector%s', async (path) => {
    const source = { host: 'h', source: '/var/log/x', sourcetype: 'syslog', index: 'main' }
    const fields = { severity: 'WARN', region: 'eu' }
    const response = await send(
      concatenated(
        { time: 1_763_632_800.123_456, ...source, event: 'text', fields },
        { time: '1763632801.5', event: { message: 'object', level: 'fatal', service: 'shop', n: 1 } },
      ),
      path,
    )
    expect([response.statusCode, response.body]).toEqual([200, success])
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(storedRows(api)).toMatchObject([
      { timestamp: '2025-11-20 10:00:00.123456', level: 'warn', message: 'text', service: '' },
      { timestamp: '2025-11-20 10:00:01.500000', level: 'error', message: 'object', service: 'shop' },
    ])
    expect(storedMetadata(api)).toEqual([
      { region: 'eu', ...source },
      { n: 1, originalLevel: 'fatal' },
    ])
  })

  it('may be separated by whitespace, be in an array, and be of any type', async () => {
    const response = await send(' {"event":"a"}\r\n\n{"event":7} [{"event":[1]},{"event":false}]\t ')
    expect(response.body).toBe(success)
    expect(api.queue.rows.map(({ message }) => message)).toEqual(['a', '7', '[1]', 'false'])
  })

  it('keep what their envelope and their event both have', async () => {
    const event = { msg: 'm', timestamp: 'x', source: 'y' }
    await send(
      concatenated(
        { time: 1_763_632_800, source: 's', event, fields: { msg: 'f' }, extra: true },
        { time: 'soon', fields: [1], event: 'e', host: '', foo: null },
        { event: { line: 'of a container', source: 'stdout', tag: 't' } },
        { event: { message: { msg: 'inner', line: 1 }, severity: 'warn', line: 2, n: 3 } },
      ),
    )
    expect(api.queue.rows.map(({ message }) => message)).toEqual(['m', 'e', 'of a container', 'inner'])
    expect(api.queue.rows[0]).toMatchObject({ timestamp: '2025-11-20 10:00:00.000000' })
    expect(storedMetadata(api)).toEqual([
      { timestamp_2: 'x', source: 'y', msg_2: 'f', source_2: 's', extra: true },
      { host: '', foo: null, fields: [1], time: 'soon' },
      { source: 'stdout', tag: 't' },
      { line: 1, n: 3, line_2: 2 },
    ])
  })

  it('have a 200 if one is stored, so that no client sends them once more', async () => {
    const long = { event: 'm'.repeat(limits.messageCharactersMax + 1) }
    const events = [{ event: 'a' }, { host: 'h' }, 'x', { event: '' }, long, { event: 'b' }]
    const response = await send(concatenated(...events))
    expect(response.statusCode).toBe(200)
    expect(response.json()).toMatchObject({
      text: 'Success',
      code: 0,
      'invalid-event-number': 1,
      rejected: 3,
    })
    expect(api.queue.rows.map(({ message }) => message?.slice(0, 2))).toEqual(['a', 'mm', 'b'])
    const none = await send('{"host":"h"}"x"')
    expect(none.json()).toMatchObject({ code: 12, 'invalid-event-number': 0, rejected: 2 })
  })

  it.each<[what: string, body: string | Buffer, status: number, code: number]>([
    ['an event without "event"', '{"host":"h"}', 400, 12],
    ['an event that is null', '{"event":null}', 400, 13],
    ['a string', '"x"', 400, 6],
    ['an empty body', '', 400, 5],
    ['whitespace', ' \n ', 400, 5],
    ['no JSON', 'hello', 400, 6],
    ['JSON that ends too early', '{"event":"a"}{"event":', 400, 6],
    ['a comma between events', '{"event":"a"},{"event":"b"}', 400, 6],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 400, 6],
    ['too many events', '{"event":1}'.repeat(limits.recordsPerRequestMax + 1), 413, 27],
    ['too many values without events', '[]'.repeat(limits.recordsPerRequestMax + 1), 413, 27],
  ])('are rejected, and nothing is stored, with %s', async (_what, body, status, code) => {
    const response = await send(body)
    expect([response.statusCode, response.json<{ code: number }>().code]).toEqual([status, code])
    expect(api.queue.adds).toEqual([])
  })
})

describe("Docker's logging driver", () => {
  it('learns without a key that the API is there', async () => {
    for (const path of ['', '/event', '/event/1.0']) {
      const url = `/services/collector${path}`
      const { statusCode, body } = await api.app.inject({ method: 'OPTIONS', url })
      expect([statusCode, body]).toEqual([200, success])
      const { headers } = await api.app.inject({ method: 'GET', url })
      expect(headers.allow).toBe('POST, OPTIONS')
    }
    for (const path of ['/health', '/health/1.0']) {
      const { statusCode, body } = await api.app.inject(`/services/collector${path}`)
      expect([statusCode, body]).toEqual([200, '{"text":"HEC is healthy","code":17}'])
    }
  })

  it('sends plain lines, or lines of JSON, with labels of the container', async () => {
    const origin = { source: 'stderr', tag: 'shop', attrs: { service: 'checkout', region: 'eu' } }
    await send(
      concatenated(
        { host: 'node1', event: { line: 'text', ...origin } },
        { host: 'node1', event: { line: { level: 'warn', msg: 'fields', n: 1, tag: 'own' }, ...origin } },
        { host: 'node1', event: { line: null, ...origin } },
      ),
    )
    expect(api.queue.rows).toMatchObject([
      { level: 'log', message: 'text', service: 'checkout' },
      { level: 'warn', message: 'fields', service: 'checkout' },
      { level: 'log', message: JSON.stringify({ line: null, ...origin }), service: '' },
    ])
    expect(storedMetadata(api)).toEqual([
      { region: 'eu', source: 'stderr', tag: 'shop', host: 'node1' },
      { n: 1, tag: 'own', region: 'eu', source: 'stderr', tag_2: 'shop', host: 'node1' },
      { line: null, ...origin, host: 'node1' },
    ])
  })
})

describe('raw events', () => {
  it('are lines', async () => {
    const body = Buffer.concat([Buffer.from('one\r\n\ntwo {"a":1}\n'), Buffer.from([0x61, 0xff])])
    const query = '?host=h&sourcetype=s&sourcetype=t&time=1763632800.25&channel=c&other=x'
    const response = await send(body, `/raw${query}`)
    expect(response.json()).toEqual({ text: 'Success', code: 0 })
    expect(api.queue.rows).toMatchObject([
      { message: 'one', level: 'log', timestamp: '2025-11-20 10:00:00.250000' },
      { message: 'two {"a":1}' },
      { message: 'a\u{FFFD}' },
    ])
    expect(storedMetadata(api)[0]).toEqual({ host: 'h', sourcetype: 's', sourcetype_2: 't' })
  })

  it('keep up to 16 values of parameters, whatever they are, because each row has them', async () => {
    const path = `/raw?time=yesterday&time=1763632800&time=1&source=${'s'.repeat(5_000)}&index=`
    expect((await send('x', path)).statusCode).toBe(200)
    expect(api.queue.rows).toMatchObject([{ timestamp: '2025-11-20 10:00:00.000000' }])
    expect(storedMetadata(api)).toEqual([
      { source: 's'.repeat(5_000), index: '', time: 'yesterday', time_2: '1' },
    ])
    const values = 'host=h&'.repeat(16)
    expect((await send('x', `/raw?${values}other=o`)).statusCode).toBe(200)
    expect((await send('x', `/raw?${values}host=h`)).statusCode).toBe(400)
  })

  it('with lines that are too long are cut', async () => {
    const response = await send(`a\n${'x'.repeat(600_000)}\n${'y'.repeat(70_000)}\nb`, '/raw/1.0')
    expect(response.json()).toEqual({ code: 0, text: 'Success' })
    expect(api.queue.rows.map(({ message = '' }) => message.length)).toEqual([1, 65_536, 65_536, 1])
    expect(storedMetadata(api)[1]).toEqual({ sluiceRepaired: ['too_long'] })
  })
})

it('a key may be the password, and must not be in the URL', async () => {
  const authorization = `Basic ${Buffer.from(`x:${api.key}`).toString('base64')}`
  expect((await send('{"event":1}', '', { authorization })).statusCode).toBe(200)
  const response = await send('{"event":1}', `?token=${api.key}`)
  expect(response.statusCode).toBe(401)
  expect(response.json()).toMatchObject({ code: 3, detail: expect.stringContaining('Authorization header') })
  expect(api.queue.adds).toHaveLength(1)
})
