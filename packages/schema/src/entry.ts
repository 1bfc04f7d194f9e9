import type { FromSchema, JSONSchema } from 'json-schema-to-ts'
import { environments, levels, limits, sources } from './limits.ts'

/**
 * The JSON Schema of an entry as clients send it: the source of its type, its validation and its documentation. `null` for an
 * optional field means that it is absent. Unknown fields are allowed, and stored in `metadata`.
 */
export const entrySchema = {
  $id: 'Entry',
  type: 'object',
  description:
    'One log entry. Fields that are not listed here are stored in `metadata` under their own names.',
  required: ['level', 'message'],
  properties: {
    level: {
      type: 'string',
      enum: levels,
      description: 'Severity of the entry.',
    },
    message: {
      type: 'string',
      maxLength: limits.messageCharactersMax,
      description: 'Human-readable log message.',
    },
    metadata: {
      type: ['object', 'null'],
      maxProperties: limits.metadataNamesMax,
      description:
        `Debugging context: any JSON object of at most ${limits.metadataBytesMax} bytes as JSON, ` +
        `${limits.metadataDepthMax} levels and ${limits.metadataNamesMax} names at the top level.`,
    },
    environment: {
      type: ['string', 'null'],
      enum: [...environments, null],
      description: 'Environment in which the application runs.',
    },
    source: {
      type: ['string', 'null'],
      enum: [...sources, null],
      description: 'Side of the application that logged the entry.',
    },
    service: {
      type: ['string', 'null'],
      maxLength: limits.serviceCharactersMax,
      description: 'Name of the application.',
    },
    url: {
      type: ['string', 'null'],
      maxLength: limits.urlCharactersMax,
      description: 'Full URL where the log originated.',
    },
    pathname: {
      type: ['string', 'null'],
      maxLength: limits.pathnameCharactersMax,
      description: 'URL pathname where the log originated.',
    },
    stack: {
      type: ['string', 'null'],
      maxLength: limits.stackCharactersMax,
      description: 'Stack trace or error stack text.',
    },
    timestamp: {
      type: ['string', 'null'],
      format: 'date-time',
      description:
        'ISO 8601 date-time of the years 1970–2261, with any offset; UTC without one. Stored with microsecond precision. ' +
        'Default: the time of receipt.',
    },
  },
} as const satisfies JSONSchema

/** An entry as clients send it, with a valid structure. */
export type Entry = FromSchema<typeof entrySchema>

/** The names of the fields that have a column. */
export const entryFields: ReadonlySet<string> = new Set(Object.keys(entrySchema.properties))

/** An error in an entry. `path` is a JSON Pointer (RFC 6901) into the entry; '' is the entry itself. */
export interface EntryError {
  readonly path: string
  readonly code: EntryErrorCode
  readonly message: string
}

/** The stable codes of errors in an entry, and their meanings. */
export const entryErrorCodes = {
  invalid_json: 'The line is not JSON.',
  invalid_timestamp: 'The value is not an ISO 8601 date-time of the years 1970–2261.',
  invalid_unicode:
    'A string contains half of a surrogate pair, which has no UTF-8 form, or bytes that are not UTF-8.',
  missing: 'A required field is absent.',
  not_allowed: 'The value is not one of the allowed values.',
  too_deep: 'The value is nested deeper than allowed.',
  too_large: 'The value has more bytes than allowed.',
  too_long: 'The value has more characters than allowed.',
  too_many_names: 'The object has more names than allowed.',
  wrong_type: 'The value has the wrong type. Values are not converted.',
} as const
export type EntryErrorCode = keyof typeof entryErrorCodes
