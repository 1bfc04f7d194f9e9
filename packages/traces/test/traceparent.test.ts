import { expect, it } from 'vitest'
import { formatTraceparent, parseTraceparent } from '../src/index.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'
const head = `00-${traceId}-${spanId}`

it.each([
  [`${head}-01`, true],
  [`${head}-00`, false],
  // Only the lowest bit is about sampling.
  [`${head}-fe`, false],
  [formatTraceparent({ traceId, spanId }), true],
  [`cc-${traceId}-${spanId}-01-what-the-future-brings`, true],
])('the traceparent %s is sampled: %s', (text, isSampled) => {
  expect(parseTraceparent(text)).toEqual({ traceId, spanId, isSampled })
})

it.each([
  ['another string', 'none'],
  ['version ff', `ff-${traceId}-${spanId}-01`],
  ['upper-case digits', `${head.toUpperCase()}-01`],
  ['a trace id of zeros', `00-${'0'.repeat(32)}-${spanId}-01`],
  ['a span id of zeros', `00-${traceId}-${'0'.repeat(16)}-01`],
  ['no flags', head],
  ['long flags', `${head}-011`],
  ['more than version 00 has', `${head}-01-more`],
  ['two headers in one', `${head}-01, ${head}-01`],
  ['a longer text in a later version', `cc-${traceId}-${spanId}-01more`],
])('a traceparent is invalid with %s', (_what, text) => {
  expect(parseTraceparent(text)).toBeUndefined()
})
