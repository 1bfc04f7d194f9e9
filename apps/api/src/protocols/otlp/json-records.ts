import { parseChecked } from '@sluice/rows'
import type { SourceRecord } from '../../intake/records.ts'
import { entryOf, type Origin, originOf, originOfResource } from './entry-of-record.ts'
import { type FoundValue, OtlpJsonFinder } from './json-finder.ts'
import { checkParts, partLimits } from './json-parts.ts'
import {
  membersOf,
  readAnyValue,
  readInt32,
  readKeyValues,
  readText,
  readUint32,
  readUint64,
} from './json-values.ts'
import {
  emptyRecord,
  emptyResource,
  emptyScope,
  type LogRecord,
  orError,
  RecordError,
  type Resource,
  type Scope,
} from './log-record.ts'
import { levels, ValueBudget } from './value-budget.ts'

/** Scanning this many bytes takes less than a millisecond. */
const STEP_BYTES = 64 * 1024
/**
 * The records of an ExportLogsServiceRequest in JSON.
 *
 * @param body must be JSON, and an object
 * @returns undefined ends a step
 * @throws Problem `invalid_body`, `too_many_entries`
 */
export function* jsonRecords(body: Buffer): Generator<SourceRecord | undefined, void> {
  const finder = new OtlpJsonFinder(body)
  let found = finder.step(STEP_BYTES)
  for (; found === undefined; found = finder.step(STEP_BYTES)) yield undefined
  for (const group of found) {
    const resource =
      (yield* checkParts(body, group.resource, group.schemaUrl)) ??
      orError(() => originOfResource(readResource(body, group.resource, group.schemaUrl)))
    yield undefined
    for (const one of group.scopes) {
      const origin =
        resource instanceof RecordError
          ? resource
          : ((yield* checkParts(body, one.scope, one.schemaUrl)) ??
            orError(() => originOf(resource, readScope(body, one.scope, one.schemaUrl))))
      yield undefined
      for (const record of one.records) yield yield* toSource(body, record, origin)
    }
  }
}

function* toSource(
  body: Buffer,
  found: FoundValue,
  origin: Origin | RecordError,
): Generator<undefined, SourceRecord> {
  if (origin instanceof RecordError) return { error: origin.entryError }
  const error = yield* checkParts(body, found)
  if (error !== undefined) return { error: error.entryError }
  const value = parse(body, found)
  // To parse a large record takes as long as to decode it, and as to make a row of it.
  const isLarge = found.end - found.start > partLimits.uncheckedBytesMax
  if (isLarge) yield undefined
  const entry = orError(() => entryOf(readLogRecord(value), origin))
  if (isLarge) yield undefined
  return entry instanceof RecordError ? { error: entry.entryError } : { entry }
}

/** @param found checked with `checkParts` */
function parse(body: Buffer, { start, end, isExact }: FoundValue): unknown {
  return parseChecked(body.toString('utf8', start, end), isExact)
}

function readResource(
  body: Buffer,
  found: FoundValue | undefined,
  schemaUrl: FoundValue | undefined,
): Resource {
  const resource = emptyResource()
  const value = found === undefined ? null : parse(body, found)
  for (const [name, part] of value === null ? [] : membersOf(value, 'resource')) {
    if (name === 'attributes')
      readKeyValues(part, name, resource.attributes, levels.attributes, new ValueBudget())
    else if (name === 'droppedAttributesCount') resource.droppedAttributesCount = readUint32(part, name)
  }
  resource.schemaUrl = readSchemaUrl(body, schemaUrl)
  return resource
}

function readScope(body: Buffer, found: FoundValue | undefined, schemaUrl: FoundValue | undefined): Scope {
  const scope = emptyScope()
  const value = found === undefined ? null : parse(body, found)
  for (const [name, part] of value === null ? [] : membersOf(value, 'scope')) {
    if (name === 'name') scope.name = readText(part, name)
    else if (name === 'version') scope.version = readText(part, name)
    else if (name === 'attributes')
      readKeyValues(part, name, scope.attributes, levels.scopeAttributes, new ValueBudget())
    else if (name === 'droppedAttributesCount') scope.droppedAttributesCount = readUint32(part, name)
  }
  scope.schemaUrl = readSchemaUrl(body, schemaUrl)
  return scope
}

function readSchemaUrl(body: Buffer, found: FoundValue | undefined): string {
  const value = found === undefined ? null : parse(body, found)
  return value === null ? '' : readText(value, 'schemaUrl')
}

/** @throws RecordError */
function readLogRecord(value: unknown): LogRecord {
  const record = emptyRecord()
  const budget = new ValueBudget()
  for (const [name, part] of membersOf(value, 'a log record')) {
    switch (name) {
      case 'timeUnixNano':
        record.timeUnixNano = readUint64(part, name)
        break
      case 'observedTimeUnixNano':
        record.observedTimeUnixNano = readUint64(part, name)
        break
      case 'severityNumber':
        record.severityNumber = readSeverityNumber(part)
        break
      case 'severityText':
        record.severityText = readText(part, name)
        break
      case 'body':
        record.body = readAnyValue(part, levels.body, budget)
        break
      case 'attributes':
        readKeyValues(part, name, record.attributes, levels.attributes, budget)
        break
      case 'droppedAttributesCount':
        record.droppedAttributesCount = readUint32(part, name)
        break
      case 'flags':
        record.flags = readUint32(part, name)
        break
      case 'traceId':
        record.traceId = readId(part, name)
        break
      case 'spanId':
        record.spanId = readId(part, name)
        break
      case 'eventName':
        record.eventName = readText(part, name)
        break
      default:
    }
  }
  return record
}

const SEVERITY_NAME = /^SEVERITY_NUMBER_(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)([234]?)$/
const severityNames = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']

/** OTLP requires numbers. Encoders of Protocol Buffers in general also write names. */
function readSeverityNumber(value: unknown): number {
  const [, name = '', step = ''] = typeof value === 'string' ? (SEVERITY_NAME.exec(value) ?? []) : []
  if (name === '') return value === 'SEVERITY_NUMBER_UNSPECIFIED' ? 0 : readInt32(value, 'severityNumber')
  return severityNames.indexOf(name) * 4 + Number(step === '' ? 1 : step)
}

/** OTLP writes ids in hexadecimal. Other texts are kept as they are. */
function readId(value: unknown, what: string): string {
  const text = readText(value, what)
  return /^[0-9a-fA-F]+$/.test(text) ? text.toLowerCase() : text
}
