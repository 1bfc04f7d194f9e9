import type { SourceRecord } from '../../intake/records.ts'
import { entryOf } from './entry-of-record.ts'
import { emptyRecord, type LogRecord } from './log-record.ts'
import { ProtobufReader, tagOf } from './protobuf-reader.ts'
import { protobufScopes, type ScopeLogs, Steps } from './protobuf-scopes.ts'
import { readAnyValue, readKeyValue } from './protobuf-values.ts'
import { RecordError } from './record-error.ts'
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
 * @returns undefined ends a step
 * @throws MalformedProtobuf
 */
export function* protobufRecords(body: Buffer): Generator<SourceRecord | undefined, void> {
  const steps = new Steps()
  for (const scope of protobufScopes(body, steps)) {
    if (scope === undefined) yield undefined
    else yield* recordsOfScope(scope, steps)
  }
}

function* recordsOfScope(
  { bytes, origin }: ScopeLogs,
  steps: Steps,
): Generator<SourceRecord | undefined, void> {
  const reader = new ProtobufReader(bytes)
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    if (steps.isDue()) yield undefined
    if (tag !== logRecord) reader.skip()
    else {
      const record = reader.bytes()
      try {
        if (origin instanceof RecordError) throw origin
        yield { entry: entryOf(readLogRecord(record), origin) }
      } catch (error) {
        if (!(error instanceof RecordError)) throw error
        yield { error: error.entryError }
      }
    }
  }
}

/** @throws MalformedProtobuf, RecordError */
function readLogRecord(bytes: Buffer): LogRecord {
  checkBytes(bytes.length)
  const record = emptyRecord()
  const budget = new ValueBudget()
  const reader = new ProtobufReader(bytes)
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
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
