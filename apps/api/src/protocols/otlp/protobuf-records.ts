import type { RecordOrigin } from '@sluice/row-scanner'
import type { ScanRecords, SourceRecord } from '../../intake/records.ts'
import { entryOf, type Origin } from './entry-of-record.ts'
import { emptyRecord, type LogRecord, orError, RecordError } from './log-record.ts'
import { ProtobufReader, tagOf } from './protobuf-reader.ts'
import { protobufScopes, type ScopeLogs, Steps } from './protobuf-scopes.ts'
import { readAnyValue, readKeyValue } from './protobuf-values.ts'
import { checkBytes, levels, ValueBudget } from './value-budget.ts'

/** In ScopeLogs. */
const logRecord = tagOf(2, 'bytes')

/** The fields of LogRecord. */
const tags = {
  timeUnixNano: tagOf(1, 'fixed64'),
  severityNumber: tagOf(2, 'varint'),
  severityText: tagOf(3, 'bytes'),
  body: tagOf(5, 'bytes'),
  attribute: tagOf(6, 'bytes'),
  droppedAttributesCount: tagOf(7, 'varint'),
  flags: tagOf(8, 'fixed32'),
  traceId: tagOf(9, 'bytes'),
  spanId: tagOf(10, 'bytes'),
  observedTimeUnixNano: tagOf(11, 'fixed64'),
  eventName: tagOf(12, 'bytes'),
} as const

/**
 * The records of an ExportLogsServiceRequest in Protocol Buffers.
 *
 * @param scan makes rows of ordinary records, which are the rows of the decoder. Without it, all records are decoded
 * @returns undefined ends a step
 * @throws MalformedProtobuf
 */
export function* protobufRecords(
  body: Buffer,
  scan?: ScanRecords,
): Generator<SourceRecord | undefined, void> {
  const steps = new Steps()
  for (const scope of protobufScopes(body, steps)) {
    if (scope === undefined) yield undefined
    else if (scan === undefined || scope.origin instanceof RecordError || scope.origin.text === undefined)
      yield* decodeRecords(scope, 0, scope.bytes.length, steps)
    else yield* scanRecords(scope.bytes, scope.origin, scope.origin.text, scan, steps)
  }
}

/** The rows of ordinary records, and the other records. */
function* scanRecords(
  bytes: Buffer,
  origin: Origin,
  text: RecordOrigin,
  scan: ScanRecords,
  steps: Steps,
): Generator<SourceRecord | undefined, void> {
  for (let at = 0; at < bytes.length;) {
    const scanned = scan(bytes, at, text)
    if (scanned.rows === undefined)
      at = yield* decodeRecords({ bytes, origin }, at, at + scanned.bytes, steps)
    else {
      yield { rows: scanned.rows }
      at += scanned.bytes
    }
  }
}

/** @returns where the field after the last one begins */
function* decodeRecords(
  { bytes, origin }: ScopeLogs,
  start: number,
  end: number,
  steps: Steps,
): Generator<SourceRecord | undefined, number> {
  const reader = new ProtobufReader(bytes, start)
  // At least one field.
  do {
    if (steps.isDue()) yield undefined
    const tag = reader.next()
    if (tag === logRecord) yield toSource(reader.bytes(), origin)
    else if (tag !== -1) steps.skip(reader)
  } while (reader.at < end)
  return reader.at
}

/** @throws MalformedProtobuf */
function toSource(bytes: Buffer, origin: Origin | RecordError): SourceRecord {
  const entry = origin instanceof RecordError ? origin : orError(() => entryOf(readLogRecord(bytes), origin))
  return entry instanceof RecordError ? { error: entry.entryError } : { entry }
}

/** @throws MalformedProtobuf, RecordError */
function readLogRecord(bytes: Buffer): LogRecord {
  checkBytes(bytes.length)
  const record = emptyRecord()
  const budget = new ValueBudget()
  const reader = new ProtobufReader(bytes)
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    budget.takeField()
    switch (tag) {
      case tags.timeUnixNano:
        record.timeUnixNano = reader.fixed64()
        break
      case tags.severityNumber:
        record.severityNumber = reader.int32()
        break
      case tags.severityText:
        record.severityText = reader.string()
        break
      case tags.body:
        record.body = readAnyValue(reader.message(), record.body, levels.body, budget)
        break
      case tags.attribute:
        readKeyValue(reader.message(), record.attributes, levels.attributes, budget)
        break
      case tags.droppedAttributesCount:
        record.droppedAttributesCount = reader.uint32()
        break
      case tags.flags:
        record.flags = reader.fixed32()
        break
      case tags.traceId:
        record.traceId = reader.bytes().toString('hex')
        break
      case tags.spanId:
        record.spanId = reader.bytes().toString('hex')
        break
      case tags.observedTimeUnixNano:
        record.observedTimeUnixNano = reader.fixed64()
        break
      case tags.eventName:
        record.eventName = reader.string()
        break
      default:
        reader.skip()
    }
  }
  return record
}
