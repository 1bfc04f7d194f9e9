import { entryErrorCodes, entrySchema, limits } from '@sluice/schema'
import { problems } from '../problems.ts'

export type JsonObject = Readonly<Record<string, unknown>>

export const schemaRef = (name: keyof typeof schemas): JsonObject => ({
  $ref: `#/components/schemas/${name}`,
})

const count = (description: string): JsonObject => ({
  type: 'integer',
  minimum: 0,
  maximum: limits.entriesPerBatchMax,
  description,
})

const entries: JsonObject = {
  type: 'array',
  maxItems: limits.entriesPerBatchMax,
  items: { $ref: '#/components/schemas/Entry' },
}

const entryErrors = Object.entries(entryErrorCodes).map(([code, meaning]) => `- \`${code}\`: ${meaning}`)

/** Every schema of the document, by its name. What validates entries is what describes them. */
export const schemas = {
  // Without its name: in a document, that would be the address against which references are resolved.
  Entry: { ...entrySchema, $id: undefined },
  Batch: {
    type: 'object',
    description: 'A batch of entries. An entry that is invalid is rejected alone.',
    required: ['logs'],
    properties: { logs: entries },
  },
  Entries: { ...entries, description: 'A batch as a bare array, as log shippers send it.' },
  EntryAccepted: {
    type: 'object',
    description: 'The answer to a single entry.',
    required: ['id', 'status', 'timestamp'],
    properties: {
      id: { type: 'string', format: 'uuid', description: 'Identifies the entry (UUIDv7).' },
      status: { const: 'accepted' },
      timestamp: {
        type: 'string',
        description: "The entry's own timestamp as it was sent, or the time of receipt.",
      },
    },
  },
  BatchAccepted: {
    type: 'object',
    description:
      'The answer to a batch. `accepted` and `rejected` add up to the entries that were sent. ' +
      'It is a 202 also where all were rejected.',
    required: ['success', 'accepted', 'rejected'],
    properties: {
      success: { const: true },
      accepted: count('How many entries will be stored.'),
      rejected: count('How many entries will not be stored. `errors` says why.'),
      errors: {
        type: 'array',
        minItems: 1,
        maxItems: limits.entriesPerBatchMax * limits.errorsPerEntryMax,
        description: 'Only there where entries were rejected.',
        items: { $ref: '#/components/schemas/FieldError', type: 'object', required: ['index'] },
      },
    },
  },
  Problem: {
    type: 'object',
    description:
      'What is wrong (RFC 9457). Nothing of the request was stored, unless the code is `queue_unavailable`: then nobody ' +
      'knows.',
    required: ['type', 'title', 'status', 'detail', 'code', 'requestId'],
    properties: {
      type: { type: 'string', format: 'uri', description: 'Identifies the kind of problem, like `code`.' },
      title: { type: 'string', description: 'What `code` means.' },
      status: { type: 'integer', description: 'The status of the answer.' },
      detail: { type: 'string', description: 'What is wrong with this request, for people.' },
      code: { enum: Object.keys(problems), description: 'Stable: what programs should look at.' },
      requestId: { type: 'string', description: 'As in `X-Request-Id`.' },
      errors: {
        type: 'array',
        minItems: 1,
        maxItems: limits.errorsPerEntryMax,
        description: 'Which fields are at fault, where it is fields.',
        items: { $ref: '#/components/schemas/FieldError' },
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
        maximum: limits.entriesPerBatchMax - 1,
        description: "The entry's place in its batch, from 0. Blank lines of NDJSON are not counted.",
      },
      path: {
        type: 'string',
        format: 'json-pointer',
        description: 'The field, as a JSON Pointer (RFC 6901) into the entry. Empty for the entry itself.',
      },
      code: { enum: Object.keys(entryErrorCodes), description: `Stable.\n${entryErrors.join('\n')}` },
      message: { type: 'string', description: 'For people.' },
    },
  },
  Health: {
    type: 'object',
    required: ['status'],
    properties: { status: { const: 'ok' } },
  },
} as const
