/** A value of an attribute or a body. Integers become `intValue`, other numbers `doubleValue`, and null a value that is not set. */
export type OtlpValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | Double
  | readonly OtlpValue[]
  | { readonly [name: string]: OtlpValue }

/** A number that is sent as a double, although it may be an integer. */
export class Double {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

export type OtlpAttributes = Readonly<Record<string, OtlpValue>>

export interface OtlpLogRecord {
  readonly timeUnixNano?: bigint
  readonly observedTimeUnixNano?: bigint
  readonly severityNumber?: number
  readonly severityText?: string
  readonly body?: OtlpValue
  readonly attributes?: OtlpAttributes
  readonly droppedAttributesCount?: number
  readonly flags?: number
  /** Hexadecimal. */
  readonly traceId?: string
  readonly spanId?: string
  readonly eventName?: string
}

export interface OtlpScopeLogs {
  readonly scope?: {
    readonly name?: string
    readonly version?: string
    readonly attributes?: OtlpAttributes
    readonly droppedAttributesCount?: number
  }
  readonly schemaUrl?: string
  readonly logRecords: readonly OtlpLogRecord[]
}

export interface OtlpResourceLogs {
  readonly resource?: { readonly attributes?: OtlpAttributes; readonly droppedAttributesCount?: number }
  readonly schemaUrl?: string
  readonly scopeLogs: readonly OtlpScopeLogs[]
}

/** Functions that encode one field of a message in Protocol Buffers. */
export const field = {
  varint: (number: number, value: number | bigint): Buffer =>
    Buffer.concat([varint(number * 8), varint(value)]),
  fixed64: (number: number, value: bigint): Buffer => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64LE(value)
    return Buffer.concat([varint(number * 8 + 1), bytes])
  },
  double: (number: number, value: number): Buffer => {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(value)
    return Buffer.concat([varint(number * 8 + 1), bytes])
  },
  fixed32: (number: number, value: number): Buffer => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(value)
    return Buffer.concat([varint(number * 8 + 5), bytes])
  },
  bytes: (number: number, value: string | Uint8Array): Buffer => {
    const bytes = Buffer.from(value)
    return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes])
  },
} as const

export function varint(value: number | bigint): Buffer {
  const bytes: number[] = []
  let left = BigInt.asUintN(64, BigInt(value))
  for (; left >= 0x80n; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80)
  bytes.push(Number(left))
  return Buffer.from(bytes)
}

/** An ExportLogsServiceRequest in Protocol Buffers, with fields in the order of their numbers. Absent fields are not written. */
export function encodeLogs(resourceLogs: readonly OtlpResourceLogs[]): Buffer {
  return Buffer.concat(resourceLogs.map((one) => field.bytes(1, encodeResourceLogs(one))))
}

function encodeResourceLogs({ resource, schemaUrl, scopeLogs }: OtlpResourceLogs): Buffer {
  return join([
    resource &&
      field.bytes(
        1,
        join([...encodeAttributes(1, resource.attributes), number(2, resource.droppedAttributesCount)]),
      ),
    ...scopeLogs.map((one) => field.bytes(2, encodeScopeLogs(one))),
    text(3, schemaUrl),
  ])
}

function encodeScopeLogs({ scope, schemaUrl, logRecords }: OtlpScopeLogs): Buffer {
  return join([
    scope &&
      field.bytes(
        1,
        join([
          text(1, scope.name),
          text(2, scope.version),
          ...encodeAttributes(3, scope.attributes),
          number(4, scope.droppedAttributesCount),
        ]),
      ),
    ...logRecords.map((record) => field.bytes(2, encodeRecord(record))),
    text(3, schemaUrl),
  ])
}

export function encodeRecord(record: OtlpLogRecord): Buffer {
  const { timeUnixNano, observedTimeUnixNano, body, flags, traceId, spanId } = record
  return join([
    timeUnixNano === undefined ? undefined : field.fixed64(1, timeUnixNano),
    number(2, record.severityNumber),
    text(3, record.severityText),
    body === undefined ? undefined : field.bytes(5, encodeValue(body)),
    ...encodeAttributes(6, record.attributes),
    number(7, record.droppedAttributesCount),
    flags === undefined ? undefined : field.fixed32(8, flags),
    traceId === undefined ? undefined : field.bytes(9, Buffer.from(traceId, 'hex')),
    spanId === undefined ? undefined : field.bytes(10, Buffer.from(spanId, 'hex')),
    observedTimeUnixNano === undefined ? undefined : field.fixed64(11, observedTimeUnixNano),
    text(12, record.eventName),
  ])
}

function encodeAttributes(fieldNumber: number, attributes: OtlpAttributes = {}): Buffer[] {
  return Object.entries(attributes).map((attribute) => field.bytes(fieldNumber, encodeKeyValue(attribute)))
}

function encodeKeyValue([key, value]: readonly [string, OtlpValue]): Buffer {
  return join([field.bytes(1, key), field.bytes(2, encodeValue(value))])
}

export function encodeValue(value: OtlpValue): Buffer {
  if (value === null) return Buffer.alloc(0)
  if (typeof value === 'string') return field.bytes(1, value)
  if (typeof value === 'boolean') return field.varint(2, value ? 1 : 0)
  if (typeof value === 'bigint') return field.varint(3, value)
  if (typeof value === 'number')
    return Number.isInteger(value) ? field.varint(3, value) : field.double(4, value)
  if (value instanceof Double) return field.double(4, value.value)
  if (value instanceof Uint8Array) return field.bytes(7, value)
  if (isArray(value)) return field.bytes(5, join(value.map((one) => field.bytes(1, encodeValue(one)))))
  return field.bytes(6, join(Object.entries(value).map((one) => field.bytes(1, encodeKeyValue(one)))))
}

/** The same request in the JSON form. */
export function jsonLogs(resourceLogs: readonly OtlpResourceLogs[]): string {
  return JSON.stringify({
    resourceLogs: resourceLogs.map(({ resource, scopeLogs, ...rest }) => ({
      resource: resource && jsonAttributed(resource),
      scopeLogs: scopeLogs.map(({ scope, logRecords, ...more }) => ({
        scope: scope && jsonAttributed(scope),
        logRecords: logRecords.map(jsonRecord),
        ...more,
      })),
      ...rest,
    })),
  })
}

function jsonRecord({ timeUnixNano, observedTimeUnixNano, body, ...record }: OtlpLogRecord): object {
  return {
    ...jsonAttributed(record),
    timeUnixNano: timeUnixNano?.toString(),
    observedTimeUnixNano: observedTimeUnixNano?.toString(),
    body: body === undefined ? undefined : jsonValue(body),
  }
}

function jsonAttributed(message: { readonly attributes?: OtlpAttributes }): object {
  const { attributes } = message
  return { ...message, attributes: attributes && jsonKeyValues(attributes) }
}

function jsonKeyValues(members: OtlpAttributes): object[] {
  return Object.entries(members).map(([key, value]) => ({ key, value: jsonValue(value) }))
}

function jsonValue(value: OtlpValue): object {
  if (value === null) return {}
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'bigint') return { intValue: String(value) }
  if (typeof value === 'number')
    return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: jsonDouble(value) }
  if (value instanceof Double) return { doubleValue: jsonDouble(value.value) }
  if (value instanceof Uint8Array) return { bytesValue: Buffer.from(value).toString('base64') }
  if (isArray(value)) return { arrayValue: { values: value.map(jsonValue) } }
  return { kvlistValue: { values: jsonKeyValues(value) } }
}

function jsonDouble(value: number): number | string {
  return Number.isFinite(value) ? value : String(value)
}

function isArray(value: OtlpValue): value is readonly OtlpValue[] {
  return Array.isArray(value)
}

const text = (fieldNumber: number, value: string | undefined): Buffer | undefined =>
  value === undefined ? undefined : field.bytes(fieldNumber, value)

const number = (fieldNumber: number, value: number | undefined): Buffer | undefined =>
  value === undefined ? undefined : field.varint(fieldNumber, value)

function join(parts: readonly (Buffer | undefined)[]): Buffer {
  return Buffer.concat(parts.filter((part) => part !== undefined))
}
