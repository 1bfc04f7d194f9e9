import { type Origin, originOf, originOfResource, type ResourceOrigin } from './entry-of-record.ts'
import { emptyResource, emptyScope, orError, RecordError, type Resource, type Scope } from './log-record.ts'
import { ProtobufReader, tagOf } from './protobuf-reader.ts'
import { readKeyValue } from './protobuf-values.ts'
import { checkBytes, levels, ValueBudget } from './value-budget.ts'

/** The fields of ExportLogsServiceRequest, ResourceLogs and ScopeLogs. */
const tags = {
  resourceLogs: tagOf(1, 'bytes'),
  resource: tagOf(1, 'bytes'),
  scopeLogs: tagOf(2, 'bytes'),
  scope: tagOf(1, 'bytes'),
  logRecord: tagOf(2, 'bytes'),
  schemaUrl: tagOf(3, 'bytes'),
} as const

const resourceTags = { attribute: tagOf(1, 'bytes'), droppedAttributesCount: tagOf(2, 'varint') } as const
const scopeTags = {
  name: tagOf(1, 'bytes'),
  version: tagOf(2, 'bytes'),
  attribute: tagOf(3, 'bytes'),
  droppedAttributesCount: tagOf(4, 'varint'),
} as const

/** A message ScopeLogs, and what its records have in common. */
export interface ScopeLogs {
  readonly bytes: Buffer
  /** Why all its records are rejected, or what they have in common. */
  readonly origin: Origin | RecordError
}

/**
 * Finds the scopes of an ExportLogsServiceRequest. A resource may follow its records, so the fields of ResourceLogs and ScopeLogs are passed
 * twice: first for what the records have in common, and then for the records.
 *
 * @returns undefined ends a step
 * @throws MalformedProtobuf
 */
export function* protobufScopes(body: Buffer, steps: Steps): Generator<ScopeLogs | undefined, void> {
  const request = new ProtobufReader(body)
  for (let tag = request.next(); tag !== -1; tag = request.next()) {
    if (steps.isDue()) yield undefined
    if (tag === tags.resourceLogs) yield* scopesOfResource(request.bytes(), steps)
    else steps.skip(request)
  }
}

function* scopesOfResource(bytes: Buffer, steps: Steps): Generator<ScopeLogs | undefined, void> {
  const resource = new Head(emptyResource())
  const head = new ProtobufReader(bytes)
  for (let tag = head.next(); tag !== -1; tag = head.next()) {
    if (steps.isDue()) yield undefined
    if (tag === tags.resource) resource.read(head, steps, readResource)
    else if (tag === tags.schemaUrl) resource.readSchemaUrl(head, steps)
    else steps.skip(head)
  }
  const origin = resource.error ?? orError(() => originOfResource(resource.value))
  const rest = new ProtobufReader(bytes)
  for (let tag = rest.next(); tag !== -1; tag = rest.next()) {
    if (steps.isDue()) yield undefined
    if (tag === tags.scopeLogs) yield* scopeOf(origin, rest.bytes(), steps)
    else steps.skip(rest)
  }
}

function* scopeOf(
  resource: ResourceOrigin | RecordError,
  bytes: Buffer,
  steps: Steps,
): Generator<ScopeLogs | undefined, void> {
  const scope = new Head(emptyScope())
  let hasRecords = false
  const head = new ProtobufReader(bytes)
  for (let tag = head.next(); tag !== -1; tag = head.next()) {
    if (steps.isDue()) yield undefined
    if (tag === tags.scope) scope.read(head, steps, readScope)
    else if (tag === tags.schemaUrl) scope.readSchemaUrl(head, steps)
    else {
      hasRecords ||= tag === tags.logRecord
      steps.skip(head)
    }
  }
  // A request may have a million scopes without records.
  if (!hasRecords) return
  if (resource instanceof RecordError) yield { bytes, origin: resource }
  else yield { bytes, origin: scope.error ?? orError(() => originOf(resource, scope.value)) }
}

/** Passing this many fields or units of bytes takes less than a millisecond. */
const STEP_UNITS = 4_096
const UNIT_BYTES = 16

/** Counts fields and bytes without a record, so that many of them do not hold the event loop. */
export class Steps {
  #left = STEP_UNITS

  /** Counts one field. @returns whether the step must end */
  isDue(): boolean {
    this.#left -= 1
    if (this.#left > 0) return false
    this.#left = STEP_UNITS
    return true
  }

  count(bytes: number): void {
    this.#left -= bytes / UNIT_BYTES
  }

  /** Skips the value of a field, which may be a group of many. */
  skip(reader: ProtobufReader): void {
    const start = reader.at
    reader.skip()
    this.count(reader.at - start)
  }
}

/** A resource or a scope. Official decoders merge a repeated one. */
class Head<Value extends { schemaUrl: string }> {
  readonly value: Value
  /** Why all records of it are rejected. */
  error: RecordError | undefined
  readonly #budget = new ValueBudget()
  #bytes = 0

  constructor(value: Value) {
    this.value = value
  }

  read(
    reader: ProtobufReader,
    steps: Steps,
    readInto: (reader: ProtobufReader, value: Value, budget: ValueBudget) => void,
  ): void {
    const start = reader.at
    const message = reader.message()
    this.#catch(reader.at - start, steps, () => readInto(message, this.value, this.#budget))
  }

  readSchemaUrl(reader: ProtobufReader, steps: Steps): void {
    const bytes = reader.bytes()
    this.#catch(bytes.length, steps, () => {
      this.value.schemaUrl = reader.toText(bytes)
    })
  }

  /** Counts the bytes of all messages together, because they become one value. */
  #catch(bytes: number, steps: Steps, read: () => void): void {
    steps.count(bytes)
    // A request may repeat the message two million times. Each error would cost microseconds.
    if (this.error !== undefined) return
    this.#bytes += bytes
    const error = orError(() => {
      checkBytes(this.#bytes)
      read()
    })
    if (error instanceof RecordError) this.error = error
  }
}

function readResource(reader: ProtobufReader, resource: Resource, budget: ValueBudget): void {
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    budget.takeField()
    if (tag === resourceTags.attribute)
      readKeyValue(reader.message(), resource.attributes, levels.attributes, budget)
    else if (tag === resourceTags.droppedAttributesCount) resource.droppedAttributesCount = reader.uint32()
    else reader.skip()
  }
}

function readScope(reader: ProtobufReader, scope: Scope, budget: ValueBudget): void {
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    budget.takeField()
    if (tag === scopeTags.name) scope.name = reader.string()
    else if (tag === scopeTags.version) scope.version = reader.string()
    else if (tag === scopeTags.attribute)
      readKeyValue(reader.message(), scope.attributes, levels.scopeAttributes, budget)
    else if (tag === scopeTags.droppedAttributesCount) scope.droppedAttributesCount = reader.uint32()
    else reader.skip()
  }
}
