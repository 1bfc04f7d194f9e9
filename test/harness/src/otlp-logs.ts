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

type Write<T> = (number: number, value: T) => Buffer | readonly Buffer[]

type Schema<T> = {
  readonly [Name in keyof T]-?: readonly [number: number, write: Write<Exclude<T[Name], undefined>>]
}

const messages =
  <T>(schema: Schema<T>): Write<readonly T[]> =>
  (number, all) =>
    all.map((one) => field.bytes(number, encode(schema, one)))
const message =
  <T>(schema: Schema<T>): Write<T> =>
  (number, one) =>
    field.bytes(number, encode(schema, one))
const attributes: Write<OtlpAttributes> = (number, members) =>
  Object.entries(members).map((member) => field.bytes(number, encodeKeyValue(member)))
const hex: Write<string> = (number, digits) => field.bytes(number, Buffer.from(digits, 'hex'))

const recordSchema: Schema<OtlpLogRecord> = {
  timeUnixNano: [1, field.fixed64],
  severityNumber: [2, field.varint],
  severityText: [3, field.bytes],
  body: [5, (number, body) => field.bytes(number, encodeValue(body))],
  attributes: [6, attributes],
  droppedAttributesCount: [7, field.varint],
  flags: [8, field.fixed32],
  traceId: [9, hex],
  spanId: [10, hex],
  observedTimeUnixNano: [11, field.fixed64],
  eventName: [12, field.bytes],
}
const scopeSchema: Schema<NonNullable<OtlpScopeLogs['scope']>> = {
  name: [1, field.bytes],
  version: [2, field.bytes],
  attributes: [3, attributes],
  droppedAttributesCount: [4, field.varint],
}
const scopeLogsSchema: Schema<OtlpScopeLogs> = {
  scope: [1, message(scopeSchema)],
  logRecords: [2, messages(recordSchema)],
  schemaUrl: [3, field.bytes],
}
const resourceSchema: Schema<NonNullable<OtlpResourceLogs['resource']>> = {
  attributes: [1, attributes],
  droppedAttributesCount: [2, field.varint],
}
const resourceLogsSchema: Schema<OtlpResourceLogs> = {
  resource: [1, message(resourceSchema)],
  scopeLogs: [2, messages(scopeLogsSchema)],
  schemaUrl: [3, field.bytes],
}

/** Absent fields are not written. */
function encode<T>(schema: Schema<T>, values: T): Buffer {
  const fields = Object.entries(schema) as [keyof T, readonly [number, Write<unknown>]][]
  return Buffer.concat(
    fields.flatMap(([name, [number, write]]) =>
      values[name] === undefined ? [] : write(number, values[name]),
    ),
  )
}

/** An ExportLogsServiceRequest in Protocol Buffers, with fields in the order of their numbers. */
export function encodeLogs(resourceLogs: readonly OtlpResourceLogs[]): Buffer {
  return Buffer.concat([messages(resourceLogsSchema)(1, resourceLogs)].flat())
}

export function encodeRecord(record: OtlpLogRecord): Buffer {
  return encode(recordSchema, record)
}

function encodeKeyValue([key, value]: readonly [string, OtlpValue]): Buffer {
  return Buffer.concat([field.bytes(1, key), field.bytes(2, encodeValue(value))])
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
  if (isArray(value))
    return field.bytes(5, Buffer.concat(value.map((one) => field.bytes(1, encodeValue(one)))))
  return field.bytes(
    6,
    Buffer.concat(Object.entries(value).map((one) => field.bytes(1, encodeKeyValue(one)))),
  )
}

/** The same request in the JSON form. */
export function jsonLogs(resourceLogs: readonly OtlpResourceLogs[]): string {
  return JSON.stringify({ resourceLogs }, function (this: { body?: OtlpValue }, name, value: unknown) {
    if (value === undefined) return undefined
    // `value` would be the JSON of a `Buffer`.
    if (name === 'body') return jsonValue(this.body ?? null)
    if (name === 'attributes') return jsonKeyValues(value as OtlpAttributes)
    return typeof value === 'bigint' ? String(value) : value
  })
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
