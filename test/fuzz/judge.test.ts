import type { HttpResponse } from '@sluice/harness'
import { field } from '@sluice/harness/otlp-logs'
import { expect, it } from 'vitest'
import { problems } from '../../apps/api/src/problems.ts'
import type { FuzzRequest } from './fuzz-request.ts'
import { judge } from './judge.ts'

const request: FuzzRequest = {
  number: 1,
  mutations: [],
  pieces: [],
  pauseMs: 0,
  ending: 'keeps',
  isHead: false,
  requestId: 'f-1',
  entries: 3,
  statuses: undefined,
}
const accepted: HttpResponse = {
  status: 202,
  headers: { 'x-request-id': 'f-1', 'content-type': 'application/json' },
  body: '{"success":true,"accepted":2,"rejected":1,"errors":[{"index":0,"path":"/level","code":"missing","message":"x"}]}',
}
const rejectedWith = (code: 'invalid_json' | 'unsupported_transfer_encoding'): HttpResponse => ({
  status: problems[code].status,
  headers: { 'x-request-id': 'f-1', 'content-type': 'application/problem+json' },
  body: JSON.stringify({
    type: `urn:sluice:problem:${code}`,
    title: problems[code].title,
    status: problems[code].status,
    detail: 'x',
    code,
    requestId: 'f-1',
  }),
})
const rejection = rejectedWith('invalid_json')

it('accepts answers that are as documented', () => {
  expect(judge(request, accepted)).toEqual({ fault: undefined, label: '202 202', rows: 2 })
  expect(judge(request, rejection)).toEqual({ fault: undefined, label: '400 invalid_json', rows: 0 })
  const unsupported = judge(request, rejectedWith('unsupported_transfer_encoding'))
  expect(unsupported).toEqual({ fault: undefined, label: '501 unsupported_transfer_encoding', rows: 0 })
})

const protobuf = { 'x-request-id': 'f-1', 'content-type': 'application/x-protobuf' }
const stored: HttpResponse = {
  status: 200,
  headers: protobuf,
  body: '',
  bytes: field.bytes(1, Buffer.concat([field.varint(1, 1), field.bytes(2, 'x')])),
}
const status: HttpResponse = {
  status: 400,
  headers: protobuf,
  body: '',
  bytes: Buffer.concat([field.varint(1, 3), field.bytes(2, 'invalid_protobuf: x')]),
}

it('accepts answers to OTLP', () => {
  expect(judge({ ...request, records: 3 }, stored)).toEqual({ fault: undefined, label: '200 200', rows: 2 })
  const inJson = { ...accepted, status: 200, body: '{}' }
  expect(judge({ ...request, records: 3 }, inJson)).toEqual({ fault: undefined, label: '200 200', rows: 3 })
  expect(judge(request, status)).toEqual({ fault: undefined, label: '400 invalid_protobuf', rows: 0 })
})

it('counts no rows for a replay', () => {
  const replay = { ...accepted, headers: { ...accepted.headers, 'idempotency-replayed': 'true' } }
  expect(judge(request, replay).rows).toBe(0)
})

const wrong: readonly (readonly [string, Partial<FuzzRequest>, HttpResponse])[] = [
  ['an answer to a different request', { requestId: 'f-2' }, accepted],
  ['a 200 to a request that is not OTLP', {}, stored],
  ['more rejected records than there were', { records: 0 }, stored],
  ['a status with another code', {}, { ...status, status: 413 }],
  ['a missing request id', {}, { ...accepted, headers: { 'content-type': 'application/json' } }],
  ['counts that do not add up', { entries: 4 }, accepted],
  ['a wrong status', { statuses: [401] }, accepted],
  ['a 500', {}, { ...rejection, status: 500 }],
  ['a problem with the status of a different one', {}, { ...rejection, status: 401 }],
  ['a problem with the wrong content type', {}, { ...rejection, headers: { 'x-request-id': 'f-1' } }],
  ['an undocumented problem', {}, { ...rejection, body: rejection.body.replaceAll('invalid_json', 'x') }],
  ['a problem of a different request', {}, { ...rejection, body: rejection.body.replace('f-1', 'f-2') }],
  ['a truncated body', {}, { ...accepted, body: accepted.body.slice(0, -1) }],
  ['an error without a code', {}, { ...accepted, body: accepted.body.replace('"code":"missing",', '') }],
  ['an error without a pointer', {}, { ...accepted, body: accepted.body.replace('/level', 'level') }],
  [
    'an answer that closes the connection',
    {},
    { ...accepted, headers: { ...accepted.headers, connection: 'close' } },
  ],
]

it.each(wrong)('finds %s', (_what, change, answer) => {
  expect(judge({ ...request, ...change }, answer).fault).toEqual(expect.any(String))
})
