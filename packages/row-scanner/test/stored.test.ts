import { encodeLogs, jsonLogs, type OtlpAttributes } from '@sluice/harness/otlp-logs'
import { textOfBlocks, textPrefix } from '@sluice/rows/testing'
import { rowColumns } from '@sluice/rows'
import { limits } from '@sluice/schema'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { isUtf8 } from 'node:buffer'
import { expect, it } from 'vitest'
import { RejectedBody, type ScannedRecords, Scanner } from '../src/index.ts'
import { anyLarge } from './support/any-large.ts'
import { anyLogs } from './support/any-logs.ts'
import { ID, stamp } from './support/reference.ts'
import { bytesField } from './support/wire.ts'

const scanner = new Scanner({ reserve: () => ID }, Date.now, { rowsMax: 3, bytesMax: 1_000_000 })
const prefix = textPrefix(stamp)

const anyRecord = fc.oneof(
  anyLarge,
  fc.dictionary(
    fc.constantFrom(
      ...'message level time timestamp service env stack metadata a a_2 é sluiceRepaired'.split(' '),
    ),
    fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom('\ud800', 'fatal', 'dev', '\u0000', 1_763_632_800),
    ),
  ),
)
const anyRecords = fc.array(anyRecord, { minLength: 1, maxLength: 3 })
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
const texts = (record: Readonly<Record<string, unknown>>): [string, string][] =>
  Object.entries(record).map(([name, value]) => [
    name.toWellFormed(),
    (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed(),
  ])

const push = (records: readonly Readonly<Record<string, unknown>>[]): Buffer =>
  json({
    streams: records.map((stream) => ({
      stream,
      values: records.flatMap((record) => [
        ['1763632800123456789', JSON.stringify(record)],
        ['soon', 'x', record],
      ]),
    })),
  })

/** In Protocol Buffers, with the first record as the labels of the others. */
function pushProtobuf(records: readonly Readonly<Record<string, unknown>>[]): Buffer {
  const labels = texts(records[0] ?? {}).map(
    ([name, value]) => `${JSON.stringify(name)}=${JSON.stringify(value)}`,
  )
  const lines = records.map((record) =>
    bytesField(
      2,
      bytesField(2, json(record)),
      ...texts(record).map(([name, value]) =>
        bytesField(3, bytesField(1, Buffer.from(name)), bytesField(2, Buffer.from(value))),
      ),
    ),
  )
  return bytesField(1, bytesField(1, Buffer.from(`{${labels.join(',')}}`)), ...lines)
}

const otlpLogs = (records: readonly Readonly<Record<string, unknown>>[]) => {
  const attributes = records.map(
    (record) => JSON.parse(JSON.stringify(record).toWellFormed()) as OtlpAttributes,
  )
  return attributes.map((resource) => ({
    resource: { attributes: resource },
    scopeLogs: [
      {
        scope: { name: 's', attributes: resource },
        logRecords: attributes.map((body) => ({ body, attributes: body })),
      },
    ],
  }))
}

it.each<[string, fc.Arbitrary<Buffer>, (body: Buffer) => ScannedRecords]>([
  ['Datadog', anyRecords.map(json), (body) => scanner.scanRecords('Datadog', body, prefix)],
  [
    'HEC',
    anyRecords.map((records) =>
      Buffer.concat(records.map((event) => json({ event, fields: event, a: event }))),
    ),
    (body) => scanner.scanRecords('HecEvents', body, prefix),
  ],
  [
    'lines of HEC',
    anyRecords.map((records) =>
      Buffer.concat(records.flatMap((record) => [json(record), Buffer.from('\xff\n', 'latin1')])),
    ),
    (body) => scanner.scanHecLines(body, prefix, { metadata: { host: 'a' } }),
  ],
  [
    'Elasticsearch',
    anyRecords.map((records) =>
      Buffer.from(records.map((record) => `{"index":{"_id":"1"}}\n${JSON.stringify(record)}\n`).join('')),
    ),
    (body) => scanner.scanBulk(body, prefix, 'logs'),
  ],
  ['Loki', anyRecords.map(push), (body) => scanner.scanRecords('LokiJson', body, prefix)],
  ['Loki with records', anyRecords.map(push), (body) => scanner.scanRecords('LokiJson', body, prefix, true)],
  [
    'Loki in Protocol Buffers',
    anyRecords.map(pushProtobuf),
    (body) => scanner.scanRecords('Loki', body, prefix),
  ],
  [
    'Loki with records in Protocol Buffers',
    anyRecords.map(pushProtobuf),
    (body) => scanner.scanRecords('Loki', body, prefix, true),
  ],
  [
    'OTLP',
    fc.oneof(anyLogs, anyRecords.map(otlpLogs)).map((logs) => encodeLogs(logs)),
    (body) => scanner.scanRecords('Otlp', body, prefix),
  ],
  [
    'OTLP in JSON',
    fc.oneof(anyLogs, anyRecords.map(otlpLogs)).map((logs) => Buffer.from(jsonLogs(logs))),
    (body) => scanner.scanOtlpJson(body, prefix),
  ],
])('each row of %s is a valid entry', (_protocol, anyBody, scan) => {
  fc.assert(
    fc.property(anyBody, (body) => {
      fc.pre(body.length <= limits.bodyBytesMax)
      for (const entry of entriesOf(() => scan(body))) {
        const { errors } = scanner.scan(entry, prefix, false, ({ errors: found }) => ({
          errors: [...found],
        }))
        expect(errors).toEqual([])
      }
    }),
    runsOf(20),
  )
})

/** The rows of a request as entries. A request may be rejected for the bytes of its rows. */
function entriesOf(scan: () => ScannedRecords): Buffer[] {
  try {
    return scan().pieces.flatMap(({ rows }) => {
      const blocks = Buffer.alloc(rows.byteLength)
      rows.copyTo(blocks, 0)
      return textOfBlocks(blocks).split('\n').slice(0, -1).map(entryOf)
    })
  } catch (error) {
    if (error instanceof RejectedBody && error.reason === 'bytes') return []
    throw error
  }
}

const letters: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', 0: '\0' }

/** The metadata stays as it is. */
function entryOf(row: string): Buffer {
  const values = row
    .split('\t')
    .map((value) => value.replaceAll(/\\(.)/gs, (_, letter: string) => letters[letter] ?? letter))
  const columns = Object.fromEntries(rowColumns.map((name, at) => [name, values[at] ?? '']))
  const { metadata_text: metadata = '', timestamp = '' } = columns
  const members = ['level', 'environment', 'source', 'service', 'url', 'pathname', 'message', 'stack']
    .filter((name) => name === 'message' || columns[name] !== '')
    .map((name) => `"${name}":${JSON.stringify(columns[name])},`)
  const entry = Buffer.from(
    `{${members.join('')}"timestamp":"${timestamp.replace(' ', 'T')}Z","metadata":${metadata}}`,
  )
  expect(isUtf8(entry)).toBe(true)
  return entry
}
