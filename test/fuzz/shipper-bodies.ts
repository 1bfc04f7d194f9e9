import { happens, integer, pick, type Random } from '@sluice/harness'
import { field } from '@sluice/harness/otlp-logs'
import type { FuzzBody } from './bodies.ts'
import type { ShipperName } from './fuzz-request.ts'

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
  '[]',
  '{}',
  '{"__proto__":{"a":1}}',
  '{"\\n":1,"":2}',
  '"2026-11-20T10:00:00Z"',
  '"1763632800.5"',
  `"${'x'.repeat(70_000)}"`,
  `${'['.repeat(40)}${']'.repeat(40)}`,
]
const names = [
  ...'message level time timestamp @timestamp service event fields metadata host status ddtags log line'.split(
    ' ',
  ),
  '__proto__',
  'constructor',
  '\\u0061',
]

const value = (random: Random): string =>
  happens(random, 0.6) ? `"text ${integer(random, 0, 999)}"` : pick(random, values)

const repeat = (random: Random, make: () => string): string[] =>
  Array.from({ length: happens(random, 0.01) ? integer(random, 50, 200) : integer(random, 0, 5) }, make)

const object = (random: Random): string =>
  `{${repeat(random, () => `"${pick(random, names)}":${value(random)}`).join(',')}}`

type ShipperRequest = readonly [target: string, contentType: string, content: string | Buffer]

const actions = ['{"update":{}}', '{"delete":{}}', '{}', '7']

function bulk(random: Random): ShipperRequest {
  const lines = repeat(random, () => {
    const create = pick(random, ['{"index":{}}', '{"create":{"_index":"i","_id":"1"}}'])
    const action = happens(random, 0.95) ? create : pick(random, actions)
    return `${action}\n${happens(random, 0.9) ? object(random) : value(random)}\n`
  })
  const targets = ['/elasticsearch/_bulk', '/elasticsearch/logs/_bulk', '/elasticsearch/_bulk/']
  return [pick(random, targets), 'application/x-ndjson', lines.join('')]
}

function loki(random: Random): ShipperRequest {
  if (happens(random, 0.5)) return ['/loki/api/v1/push', 'application/x-protobuf', lokiProtobuf(random)]
  const line = (): string =>
    `[${happens(random, 0.9) ? '"1763632800123456789"' : value(random)},${value(random)},${object(random)}]`
  const stream = (): string => `{"stream":${object(random)},"values":[${repeat(random, line).join(',')}]}`
  const streams = repeat(random, stream).slice(0, 10)
  return ['/loki/api/v1/push', 'application/json', `{"streams":[${streams.join(',')}]}`]
}

function lokiProtobuf(random: Random): Buffer {
  const seconds = field.varint(1, integer(random, 0, 2_000_000_000))
  const time = field.bytes(1, Buffer.concat([seconds, field.varint(2, 7)]))
  const structured = field.bytes(3, field.bytes(1, 'a'))
  const lines = repeat(random, () => value(random)).map((line) =>
    field.bytes(2, Buffer.concat([time, field.bytes(2, line.slice(0, 40)), structured])),
  )
  const labels = pick(random, ['{}', '{app="x"}', '{app=`y`, level="warn"}', '{', 'x', '{a="\\xff"}'])
  return snappy(field.bytes(1, Buffer.concat([field.bytes(1, labels), ...lines])))
}

/** A block of literals. */
function snappy(bytes: Buffer): Buffer {
  const parts: Buffer[] = [field.varint(1, bytes.length).subarray(1)]
  for (let at = 0; at < bytes.length; at += 60) {
    const part = bytes.subarray(at, at + 60)
    parts.push(Buffer.from([(part.length - 1) << 2]), part)
  }
  return Buffer.concat(parts)
}

function splunk(random: Random): ShipperRequest {
  if (happens(random, 0.2)) {
    const lines = repeat(random, () => value(random)).join('\n')
    return ['/services/collector/raw?host=h', 'application/json', lines]
  }
  const events = repeat(random, () =>
    happens(random, 0.8) ? `{"event":${value(random)},"time":${value(random)}}` : object(random),
  )
  const target = pick(random, ['/services/collector', '/services/collector/event'])
  return [target, 'application/json', events.join(pick(random, ['', '\n', ' \r\n']))]
}

function datadog(random: Random): ShipperRequest {
  return ['/api/v2/logs', 'application/json', `[${repeat(random, () => object(random)).join(',')}]`]
}

const shippers = { elasticsearch: bulk, loki, splunk, datadog } as const

/** A body for the API of a shipper, sometimes with one byte changed. */
export function drawShipperBody(random: Random): FuzzBody {
  const shipper = pick(random, Object.keys(shippers) as ShipperName[])
  const [target, contentType, content] = shippers[shipper](random)
  const bytes = Buffer.from(content)
  if (bytes.length > 0 && happens(random, 0.3))
    bytes[integer(random, 0, bytes.length - 1)] = integer(random, 0, 255)
  const isCounted = shipper === 'elasticsearch'
  return { what: `records of ${shipper}`, bytes, contentType, shipper, target, isCounted }
}
