import { entryErrorCodes, entrySchema, limits } from '@sluice/schema'
import { problems } from '../problems.ts'

export type JsonObject = Readonly<Record<string, unknown>>

export const schemaRef = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` })

const count = (description: string): JsonObject => ({
  type: 'integer',
  minimum: 0,
  maximum: limits.entriesPerRequestMax,
  description,
})

const { entriesPerRequestMax } = limits
const entries: JsonObject = { type: 'array', maxItems: entriesPerRequestMax, items: schemaRef('Entry') }

const entryErrors = Object.entries(entryErrorCodes).map(([code, meaning]) => `- \`${code}\`: ${meaning}`)

/** The schemas of the document by name. The schema of an entry also validates entries. */
export const schemas = {
  // Without `$id`: inside the document, it would become the base URI for references.
  Entry: { ...entrySchema, $id: undefined },
  Batch: {
    type: 'object',
    description: 'A batch of entries. An invalid entry is rejected without affecting the others.',
    required: ['logs'],
    properties: { logs: entries },
  },
  Entries: { ...entries, description: 'A batch as a plain array, the format of log shippers.' },
  EntryAccepted: {
    type: 'object',
    description: 'The answer to a single entry.',
    required: ['id', 'status', 'timestamp'],
    properties: {
      id: { type: 'string', format: 'uuid', description: 'Identifies the entry (UUIDv7).' },
      status: { const: 'accepted' },
      timestamp: { type: 'string', description: 'The timestamp as it was sent, or the time of receipt.' },
    },
  },
  BatchAccepted: {
    type: 'object',
    description:
      'The answer to a batch. `accepted` and `rejected` add up to the number of entries sent. ' +
      'The status is 202 even if all entries are rejected.',
    required: ['success', 'accepted', 'rejected'],
    properties: {
      success: { const: true },
      accepted: count('Number of entries that will be stored.'),
      rejected: count('Number of entries that will not be stored. `errors` contains the reasons.'),
      errors: {
        type: 'array',
        minItems: 1,
        maxItems: limits.entriesPerRequestMax * limits.errorsPerEntryMax,
        description: 'Present only if entries were rejected.',
        items: { allOf: [schemaRef('FieldError'), { type: 'object', required: ['index'] }] },
      },
    },
  },
  Problem: {
    type: 'object',
    description:
      'A problem document (RFC 9457). No entry of the request was stored. The exception is the code ' +
      '`queue_unavailable`: then the entries may or may not be stored.',
    required: ['type', 'title', 'status', 'detail', 'code', 'requestId'],
    properties: {
      type: { type: 'string', format: 'uri', description: 'A URI for the problem, equivalent to `code`.' },
      title: { type: 'string', description: 'The meaning of `code`.' },
      status: { type: 'integer', description: 'The HTTP status of the answer.' },
      detail: { type: 'string', description: 'What is wrong with this request, for humans.' },
      code: { enum: Object.keys(problems), description: 'Stable. Programs should evaluate this field.' },
      requestId: { type: 'string', description: 'The same as in the header `X-Request-Id`.' },
      errors: {
        type: 'array',
        minItems: 1,
        maxItems: limits.errorsPerEntryMax,
        description: 'The invalid fields, if the problem concerns fields.',
        items: schemaRef('FieldError'),
      },
    },
  },
  FieldError: {
    type: 'object',
    description: 'What is wrong with one field of an entry.',
    required: ['path', 'code', 'message'],
    properties: {
      index: {
        type: 'integer',
        minimum: 0,
        maximum: limits.entriesPerRequestMax - 1,
        description:
          "The entry's position in its batch, starting at 0. Blank lines of NDJSON are not counted.",
      },
      path: {
        type: 'string',
        format: 'json-pointer',
        description: 'The field, as a JSON Pointer (RFC 6901) into the entry. Empty for the entry itself.',
      },
      code: { enum: Object.keys(entryErrorCodes), description: `Stable.\n${entryErrors.join('\n')}` },
      message: { type: 'string', description: 'A human-readable explanation.' },
    },
  },
  OtlpLogs: {
    type: 'object',
    description:
      'OTLP logs: an ExportLogsServiceRequest of OpenTelemetry. An object with `level`, `message` or `logs` is not OTLP. An invalid ' +
      'record is rejected without affecting the others.',
    required: ['resourceLogs'],
    properties: { resourceLogs: { type: ['array', 'null'], items: { type: 'object' } } },
  },
  OtlpAccepted: {
    type: 'object',
    description:
      'The answer to OTLP logs: an ExportLogsServiceResponse. It is empty if no record was rejected.',
    properties: {
      partialSuccess: {
        type: 'object',
        required: ['rejectedLogRecords', 'errorMessage'],
        properties: {
          rejectedLogRecords: { type: 'string', pattern: '^[1-9][0-9]*$', description: 'Not stored.' },
          errorMessage: { type: 'string', description: 'Why they were rejected, with examples.' },
        },
      },
    },
  },
  RpcStatus: {
    type: 'object',
    description:
      'The answer to a rejected request in Protocol Buffers: a google.rpc.Status. The message begins with the code of the problem.',
    required: ['code', 'message'],
    properties: {
      code: { type: 'integer', minimum: 1, maximum: 16, description: 'A code of gRPC.' },
      message: { type: 'string' },
    },
  },
  Health: { type: 'object', required: ['status'], properties: { status: { const: 'ok' } } },
} as const
