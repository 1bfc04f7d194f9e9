import {
  Double,
  type OtlpAttributes,
  type OtlpLogRecord,
  type OtlpResourceLogs,
  type OtlpValue,
} from '@sluice/harness/otlp-logs'
import { anyText as anyTextOfRows } from '@sluice/rows/testing'
import * as fc from 'fast-check'

const anyText = fc.oneof(
  fc.constant('a string of more than sixteen bytes'),
  anyTextOfRows(40),
  fc.string({ maxLength: 40 }),
)
const anyName = fc.oneof(
  { weight: 8, arbitrary: fc.stringMatching(/^[a-z][a-z0-9._]{0,20}$/) },
  { weight: 1, arbitrary: anyText },
  fc.constantFrom('url.full', 'url.path', 'exception.stacktrace', 'service.name', '__proto__', '1', ''),
  fc.constantFrom('deployment.environment', 'deployment.environment.name', 'constructor'),
)
const anyDouble = fc.oneof(
  fc.double(),
  fc.constantFrom(0.1, 0.5, -0, 1e21, 1e-7, 2 ** 53, -(2 ** 53), 123_456.789, 0.000_001),
)
const anyNumber = fc.oneof(
  fc.integer(),
  fc.integer({ min: -300, max: 300 }),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: 2n ** 53n - 2n, max: 2n ** 53n + 2n }),
  anyDouble.map((value) => new Double(value)),
)
const anyScalar = fc.oneof(
  { weight: 4, arbitrary: anyText },
  { weight: 3, arbitrary: anyNumber },
  { weight: 2, arbitrary: fc.boolean() },
  { weight: 1, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 5 }) },
)
/** Values near and above the limits of columns and metadata. */
const anyLarge: fc.Arbitrary<OtlpValue> = fc.oneof(
  fc.constantFrom(250, 256, 257, 8_192, 8_193, 60_000, 65_536, 65_537).map((length) => 'é'.repeat(length)),
  fc.nat({ max: 110 }).map((levels) => {
    let value: OtlpValue = 'x'
    for (let level = 0; level < levels; level += 1) value = level % 3 === 0 ? { a: value } : [value]
    return value
  }),
  fc.constantFrom(5_000, 33_000).map((length) => Array.from({ length }, () => true)),
)

const anyValue: fc.Arbitrary<OtlpValue> = fc.letrec<{ value: OtlpValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    { weight: 60, arbitrary: anyScalar },
    { weight: 1, arbitrary: anyLarge },
    { weight: 40, arbitrary: fc.array(tie('value'), { maxLength: 4 }) },
    { weight: 40, arbitrary: fc.array(fc.tuple(anyName, tie('value')), { maxLength: 4 }).map(membersOf) },
  ),
})).value

function membersOf(members: readonly (readonly [string, OtlpValue])[]): OtlpAttributes {
  return Object.fromEntries(members) as OtlpAttributes
}

const anyAttributes = fc.array(fc.tuple(anyName, anyValue), { maxLength: 5 }).map(membersOf)
const maybe = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.option(value, { nil: undefined })
const anyTime = fc.oneof(
  fc.constant(0n),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc.bigInt({ min: 0n, max: 9_214_646_400_000_000n }).map((us) => us * 1_000n),
  fc.bigInt({ min: 1_763_600_000_000_000n, max: 1_800_000_000_000_000n }).map((us) => us * 1_000n),
)
const anyId = (bytes: number): fc.Arbitrary<string> =>
  fc
    .oneof(
      { weight: 5, arbitrary: fc.uint8Array({ minLength: bytes, maxLength: bytes }) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 20 }) },
      { weight: 1, arbitrary: fc.constant(new Uint8Array(bytes)) },
    )
    .map((id) => Buffer.from(id).toString('hex'))

/** A record with any of its fields. */
const anyRecord = fc.record({
  timeUnixNano: maybe(anyTime),
  observedTimeUnixNano: maybe(anyTime),
  severityNumber: maybe(fc.integer({ min: -1, max: 26 })),
  severityText: maybe(
    fc.oneof(fc.constantFrom('INFO', 'Warn', 'error', 'DEBUG', 'fatal', 'log', ''), anyText),
  ),
  body: maybe(fc.oneof({ weight: 4, arbitrary: anyText }, { weight: 1, arbitrary: anyValue })),
  attributes: maybe(anyAttributes),
  droppedAttributesCount: maybe(fc.nat({ max: 300 })),
  flags: maybe(fc.nat({ max: 300 })),
  traceId: maybe(anyId(16)),
  spanId: maybe(anyId(8)),
  eventName: maybe(anyText),
}) as fc.Arbitrary<OtlpLogRecord>

const anyScope = fc.record({ name: anyText, version: maybe(anyText), attributes: maybe(anyAttributes) })
const anyScopeLogs = fc.record({
  scope: maybe(anyScope),
  schemaUrl: maybe(anyText),
  logRecords: fc.array(anyRecord, { maxLength: 4 }),
})
const anyResource = fc.record({ attributes: anyAttributes, droppedAttributesCount: maybe(fc.nat()) })

/** Requests with every kind of value, most of them ordinary. */
export const anyLogs = fc.array(
  fc.record({
    resource: maybe(anyResource),
    schemaUrl: maybe(anyText),
    scopeLogs: fc.array(anyScopeLogs, { maxLength: 2 }),
  }),
  { maxLength: 2 },
) as fc.Arbitrary<OtlpResourceLogs[]>
