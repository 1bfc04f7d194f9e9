import { expect, it } from 'vitest'
import type { Answer } from './connection.ts'
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
const accepted: Answer = {
  status: 202,
  headers: { 'x-request-id': 'f-1', 'content-type': 'application/json' },
  body: '{"success":true,"accepted":2,"rejected":1,"errors":[{"index":0,"path":"/level","code":"missing","message":"x"}]}',
}
const refused: Answer = {
  status: 400,
  headers: { 'x-request-id': 'f-1', 'content-type': 'application/problem+json' },
  body: JSON.stringify({
    type: 'urn:sluice:problem:invalid_json',
    title: 'The body is not JSON',
    status: 400,
    detail: 'x',
    code: 'invalid_json',
    requestId: 'f-1',
  }),
}

it('finds nothing wrong with answers as they are documented', () => {
  expect(judge(request, accepted)).toEqual({ fault: undefined, label: '202 202', rows: 2 })
  expect(judge(request, refused)).toEqual({ fault: undefined, label: '400 invalid_json', rows: 0 })
})

it('counts the rows of a replay with those of the first', () => {
  const replay = { ...accepted, headers: { ...accepted.headers, 'idempotency-replayed': 'true' } }
  expect(judge(request, replay).rows).toBe(0)
})

const wrong: readonly (readonly [string, Partial<FuzzRequest>, Answer])[] = [
  ['an answer to another request', { requestId: 'f-2' }, accepted],
  ['no request id', {}, { ...accepted, headers: { 'content-type': 'application/json' } }],
  ['counts that do not add up', { entries: 4 }, accepted],
  ['a status that is not the right one', { statuses: [401] }, accepted],
  ['a 500', {}, { ...refused, status: 500 }],
  ['a problem with the status of another', {}, { ...refused, status: 401 }],
  ['a problem of another type', {}, { ...refused, headers: { 'x-request-id': 'f-1' } }],
  [
    'a problem that is not documented',
    {},
    { ...refused, body: refused.body.replaceAll('invalid_json', 'x') },
  ],
  ['a problem of another request', {}, { ...refused, body: refused.body.replace('f-1', 'f-2') }],
  ['half of a body', {}, { ...accepted, body: accepted.body.slice(0, -1) }],
  ['an error without a code', {}, { ...accepted, body: accepted.body.replace('"code":"missing",', '') }],
  ['an error without a pointer', {}, { ...accepted, body: accepted.body.replace('/level', 'level') }],
  ['a connection that is closed', {}, { ...accepted, headers: { ...accepted.headers, connection: 'close' } }],
]

it.each(wrong)('finds %s', (_what, change, answer) => {
  expect(judge({ ...request, ...change }, answer).fault).toEqual(expect.any(String))
})
