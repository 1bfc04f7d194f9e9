import { happens, integer, pick, type Random } from '@sluice/harness'
import { field, varint } from '@sluice/harness/otlp-logs'

/** A body for the API of a shipper. */
export interface ProtocolBody {
  readonly protocol: ProtocolName
  readonly target: string
  readonly contentType: string
  readonly bytes: Buffer
  /** Whether the answer tells how many records were stored. */
  readonly isCounted: boolean
}

export type ProtocolName = 'elasticsearch' | 'loki' | 'splunk' | 'datadog'

/** Values that break parsers, as JSON. */
const values = [
  'null',
  '0',
  '-1',
  '1e400',
  '12345678901234567890',
  '""',
  '"\\u0000"',
  '"\\ud800"',
  '"😀"',
  '[]',
  '{}',
  '[[[[]]]]',
  '{"__proto__":{"a":1}}',
  '{"\\n":1,"":2}',
  '"2026-11-20T10:00:00Z"',
  '"1763632800.5"',
  `"${'x'.repeat(70_000)}"`,
  `${'['.repeat(40)}${']'.repeat(40)}`,
]
const names = [
  'message',
  'level',
  'time',
  'timestamp',
  '@timestamp',
  'service',
  'event',
  'fields',
  'metadata',
  'host',
  'status',
  'ddtags',
  'log',
  'line',
  '__proto__',
  'constructor',
  '\\u0061',
]

const value = (random: Random): string =>
  happens(random, 0.6) ? `"text ${integer(random, 0, 999)}"` : pick(random, values)

function object(random: Random): string {
  const count = integer(random, 0, 5)
  const members = Array.from({ length: count }, () => `"${pick(random, names)}":${value(random)}`)
  return `{${members.join(',')}}`
}

const repeat = (random: Random, make: () => string): string[] =>
  Array.from({ length: happens(random, 0.01) ? integer(random, 50, 200) : integer(random, 0, 5) }, make)

function bulk(random: Random): ProtocolBody {
  const actions = [
    '{"index":{}}',
    '{"create":{"_index":"i","_id":"1"}}',
    '{"update":{}}',
    '{"delete":{}}',
    '{}',
    '7',
  ]
  const lines = repeat(random, () => {
    const action = happens(random, 0.9) ? pick(random, actions.slice(0, 2)) : pick(random, actions)
    return action.startsWith('{"delete"')
      ? `${action}\n`
      : `${action}\n${happens(random, 0.9) ? object(random) : value(random)}\n`
  })
  return {
    protocol: 'elasticsearch',
    target: pick(random, ['/elasticsearch/_bulk', '/elasticsearch/logs/_bulk', '/elasticsearch/_bulk/']),
    contentType: 'application/x-ndjson',
    bytes: Buffer.from(lines.join('')),
    isCounted: true,
  }
}

function lokiJson(random: Random): ProtocolBody {
  const line = (): string =>
    `[${happens(random, 0.9) ? '"1763632800123456789"' : value(random)},${value(random)},${object(random)}]`
  const stream = (): string => `{"stream":${object(random)},"values":[${repeat(random, line).join(',')}]}`
  const streams = repeat(random, stream).slice(0, 10)
  return {
    protocol: 'loki',
    target: '/loki/api/v1/push',
    contentType: 'application/json',
    bytes: Buffer.from(`{"streams":[${streams.join(',')}]}`),
    isCounted: false,
  }
}

function lokiProtobuf(random: Random): ProtocolBody {
  const time = field.bytes(
    1,
    Buffer.concat([field.varint(1, integer(random, 0, 2_000_000_000)), field.varint(2, 7)]),
  )
  const lines = repeat(random, () => value(random)).map((line) =>
    field.bytes(
      2,
      Buffer.concat([time, field.bytes(2, line.slice(0, 40)), field.bytes(3, field.bytes(1, 'a'))]),
    ),
  )
  const labels = pick(random, ['{}', '{app="x"}', '{app=`y`, level="warn"}', '{', 'x', '{a="\\xff"}'])
  return {
    protocol: 'loki',
    target: '/loki/api/v1/push',
    contentType: 'application/x-protobuf',
    bytes: snappy(field.bytes(1, Buffer.concat([field.bytes(1, labels), ...lines]))),
    isCounted: false,
  }
}

/** A block of literals. */
function snappy(bytes: Buffer): Buffer {
  const parts: Buffer[] = [varint(bytes.length)]
  if (bytes.length === 0) parts.push(Buffer.from([0]))
  for (let at = 0; at < bytes.length; at += 60) {
    const part = bytes.subarray(at, at + 60)
    parts.push(Buffer.from([(part.length - 1) << 2]), part)
  }
  return Buffer.concat(parts)
}

function splunk(random: Random): ProtocolBody {
  const event = (): string =>
    happens(random, 0.8)
      ? `{"event":${happens(random, 0.5) ? value(random) : object(random)},"time":${value(random)}}`
      : object(random)
  const isRaw = happens(random, 0.2)
  const events = repeat(random, isRaw ? () => value(random) : event)
  return {
    protocol: 'splunk',
    target: isRaw
      ? '/services/collector/raw?host=h'
      : pick(random, ['/services/collector', '/services/collector/event']),
    contentType: 'application/json',
    bytes: Buffer.from(events.join(pick(random, ['', '\n', ' \r\n']))),
    isCounted: false,
  }
}

function datadog(random: Random): ProtocolBody {
  return {
    protocol: 'datadog',
    target: '/api/v2/logs',
    contentType: 'application/json',
    bytes: Buffer.from(`[${repeat(random, () => object(random)).join(',')}]`),
    isCounted: false,
  }
}

const kinds = [bulk, bulk, lokiJson, lokiProtobuf, splunk, datadog]

/** A body of a protocol, sometimes with one byte changed. */
export function drawProtocolBody(random: Random): ProtocolBody {
  const drawn = pick(random, kinds)(random)
  if (drawn.bytes.length === 0 || !happens(random, 0.3)) return drawn
  const bytes = Buffer.from(drawn.bytes)
  bytes[integer(random, 0, bytes.length - 1)] = integer(random, 0, 255)
  return { ...drawn, bytes }
}
