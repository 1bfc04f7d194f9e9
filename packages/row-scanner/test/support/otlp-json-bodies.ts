import { jsonLogs } from '@sluice/harness/otlp-logs'
import { anyStyle, toJson } from '@sluice/rows/testing'
import * as fc from 'fast-check'
import { anyLogs } from './any-logs.ts'

const raw = (text: string): unknown => (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(text)

/** Values that may be of a wrong type, or have an unusual form. */
const others: readonly unknown[] = [
  null,
  '',
  'a b',
  '0'.repeat(32),
  '\ud800',
  '\udc00a',
  ...'7 -7 007 1.5 text NaN -Infinity 1e3 00.5e1 AAE= AAE -_8 A == 0AF7651916CD43DD'.split(' '),
  ...'18446744073709551615 -9223372036854775808 9223372036854775808'.split(' '),
  ...'SEVERITY_NUMBER_WARN2 SEVERITY_NUMBER_FATAL SEVERITY_NUMBER_INFO9'.split(' '),
  ...'true false 0 -1 7 1.5 4294967295 4294967296 1e3 1e-1 10e-1 0.0 -0 1e400'.split(' ').map(raw),
  ...'17.00000000000000001E+17 1.7e18 9223372036854775807 -9.223372036854775808e18'.split(' ').map(raw),
  ...'9223372036854775808 18446744073709551616 18446744073709551615'.split(' ').map(raw),
  raw('1.7976931348623159e308'),
  [],
  {},
  [1],
  { a: 1 },
  { stringValue: 'a' },
  { intValue: 1 },
  ...'1e+19 1.5 18446744073709551615 -9223372036854775809'
    .split(' ')
    .map((text) => Object.freeze({ intValue: raw(text) })),
  { intValue: '9223372036854775808' },
  { intValue: '-1e300' },
  { intValue: 'NaN' },
  { arrayValue: {} },
  { kvlistValue: { values: [] } },
  { values: [{}, {}] },
  { values: [{ key: 'a' }, { key: 'a', value: { boolValue: true } }] },
  { key: '\ud800', value: {} },
  { stringValue: '\udfff' },
  { bytesValue: 'AA' },
  { doubleValue: '1.5' },
  { doubleValue: '-00.5' },
  { intValue: '1', stringValue: 'a' },
]
const names = [
  'key',
  'value',
  'values',
  'stringValue',
  'boolValue',
  'intValue',
  'doubleValue',
  'arrayValue',
  'kvlistValue',
  'bytesValue',
  'timeUnixNano',
  'severityNumber',
  'body',
  'attributes',
  'droppedAttributesCount',
  'flags',
  'traceId',
  'scope',
  'resource',
  'unknown',
]

/** Requests of OTLP in JSON, in any style, half of them with values of wrong types and other names. */
export const anyJsonLogs: fc.Arbitrary<string> = fc
  .tuple(anyLogs, anyStyle, fc.infiniteStream(fc.nat()), fc.constantFrom(0, 0, 1, 3))
  .map(([logs, style, random, changes]) => {
    const next = (below: number): number => (random.next().value ?? 0) % below
    const root = JSON.parse(jsonLogs(logs)) as object
    for (let i = 0; i < changes; i += 1) change(root, next)
    return toJson(root, style)
  })

type Container = Record<string, unknown>

/** Changes one member or element somewhere in a value. */
function change(root: object, next: (below: number) => number): void {
  const all: Container[] = []
  const collect = (value: unknown): void => {
    // Numbers with their source are frozen, and what has them.
    if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
    if (Object.keys(value).length > 0) all.push(value as Container)
    Object.values(value).forEach(collect)
  }
  collect(root)
  const container = all[next(all.length)]
  if (container === undefined || (container === root && next(4) > 0)) return
  const members = Object.keys(container)
  const other = (): unknown => {
    const value = others[next(others.length)]
    return Object.isFrozen(value) ? value : structuredClone(value)
  }
  const name = members[next(members.length)] ?? ''
  // The root remains a request.
  const what = container === root ? 2 : next(4)
  if (what === 0) {
    if (Array.isArray(container)) container.splice(Number(name), 1)
    else delete container[name]
  } else if (what === 1 && !Array.isArray(container)) container[names[next(names.length)] ?? ''] = other()
  else container[name] = other()
}
