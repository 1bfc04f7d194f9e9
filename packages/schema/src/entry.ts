import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { FromSchema, JSONSchema } from 'json-schema-to-ts'
import { isRawJson } from './exact-json.ts'
import { limits } from './limits.ts'

/**
 * The JSON Schema of an entry as clients send it: the one source of its type, its validation and its documentation.
 * `null` for an optional field means that it is absent. Unknown fields are allowed, and kept in `metadata`.
 */
export const entrySchema = {
  $id: 'Entry',
  type: 'object',
  description: 'One log entry. Fields that are not listed here are kept in `metadata` under their own names.',
  required: ['level', 'message'],
  properties: {
    level: {
      type: 'string',
      enum: ['log', 'debug', 'info', 'success', 'warn', 'error'],
      description: 'How severe the entry is.',
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
      enum: ['development', 'staging', 'production', null],
      description: 'Where the application runs.',
    },
    source: {
      type: ['string', 'null'],
      enum: ['server', 'client', 'edge', null],
      description: 'Which side of the application logged.',
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
        'ISO 8601 date-time of 1970–2261, any offset, UTC without one. Stored to the microsecond. ' +
        'The time of receipt where it is absent.',
    },
  },
} as const satisfies JSONSchema

/** An entry as clients send it, valid in its structure. */
export type Entry = FromSchema<typeof entrySchema>

/** The names of the fields that have a column of their own. */
export const entryFields: ReadonlySet<string> = new Set(Object.keys(entrySchema.properties))

export const levels = entrySchema.properties.level.enum

/** What is wrong with an entry. `path` is a JSON Pointer (RFC 6901) into the entry; '' is the entry itself. */
export interface EntryError {
  readonly path: string
  readonly code: EntryErrorCode
  readonly message: string
}

/** Stable codes of what can be wrong with an entry, and what each means. */
export const entryErrorCodes = {
  invalid_json: 'The line is not JSON.',
  invalid_timestamp: 'Not an ISO 8601 date-time of 1970–2261.',
  invalid_unicode: 'A string holds half of a surrogate pair, which has no UTF-8 form.',
  missing: 'A required field is absent.',
  not_allowed: 'The value is not one of the allowed ones.',
  too_deep: 'Nested deeper than allowed.',
  too_large: 'More bytes than allowed.',
  too_long: 'More characters than allowed.',
  too_many_names: 'More names than allowed.',
  wrong_type: 'The value is of another type than asked for; nothing is converted.',
} as const
export type EntryErrorCode = keyof typeof entryErrorCodes

const codesByKeyword: Readonly<Record<string, EntryErrorCode>> = {
  required: 'missing',
  type: 'wrong_type',
  enum: 'not_allowed',
  maxLength: 'too_long',
  maxProperties: 'too_many_names',
}

/** Checks the structure of entries: types, allowed values, lengths. Timestamps and metadata are checked by `RowShaper`. */
export class EntryValidator {
  readonly #isEntry: ValidateFunction<Entry>
  readonly #explain: ValidateFunction<Entry>

  constructor() {
    this.#isEntry = compile({ allErrors: false })
    // Looks for every error, so it is for entries that are known to be wrong: on the way of a good one it costs more.
    this.#explain = compile({ allErrors: true })
  }

  /** Whether `value` is an entry. Converts nothing and changes nothing. */
  isEntry(value: unknown): value is Entry {
    // A number that was parsed exactly is an object to ajv.
    return this.#isEntry(value) && !isRawJson(value.metadata)
  }

  /** What is wrong with a value that is no entry: at least one error, at most `limits.errorsPerEntryMax`. */
  explain(value: unknown): EntryError[] {
    if (isRawJson(value)) return [notAnObject('')]
    this.#explain(value)
    const errors = (this.#explain.errors ?? []).map(toEntryError)
    if (isRawJson((value as { metadata?: unknown } | null)?.metadata)) errors.push(notAnObject('/metadata'))
    // A null or a number where a choice is asked for fails its type and its enum: the type says it all.
    const wrongTypes = new Set(
      errors.filter((error) => error.code === 'wrong_type').map((error) => error.path),
    )
    return errors
      .filter((error) => error.code === 'wrong_type' || !wrongTypes.has(error.path))
      .slice(0, limits.errorsPerEntryMax)
  }
}

function compile({ allErrors }: { allErrors: boolean }): ValidateFunction<Entry> {
  const ajv = new Ajv({
    allErrors,
    // Gives the errors their schema, for the messages.
    verbose: allErrors,
    coerceTypes: false,
    removeAdditional: false,
    useDefaults: false,
    strict: true,
    allowUnionTypes: true,
    validateFormats: false,
  })
  // ajv counts code points one by one, which costs more than all the rest of a long message's validation. A string has
  // at most as many code points as code units, so only one that might be too long is counted.
  ajv.removeKeyword('maxLength')
  ajv.addKeyword({
    keyword: 'maxLength',
    type: 'string',
    schemaType: 'number',
    error: { message: ({ schemaCode }) => `must have at most ${String(schemaCode)} characters` },
    compile: (max: number) => (data: string) => data.length <= max || codePointsWithin(data, max),
  })
  return ajv.compile<Entry>(entrySchema)
}

function notAnObject(path: string): EntryError {
  return { path, code: 'wrong_type', message: 'must be of type object' }
}

function codePointsWithin(text: string, max: number): boolean {
  if (text.length > max * 2) return false
  let count = 0
  for (const _ of text) if (++count > max) return false
  return true
}

function toEntryError(error: ErrorObject): EntryError {
  const code = codesByKeyword[error.keyword]
  if (code === undefined) throw new Error(`no code for the keyword ${error.keyword}`)
  return { path: error.instancePath, code, message: describe(error) }
}

function describe({ keyword, params, message, schema }: ErrorObject): string {
  switch (keyword) {
    case 'required':
      return `${String(params['missingProperty'])} is required`
    case 'enum':
      return `must be one of ${(params['allowedValues'] as (string | null)[]).filter((value) => value !== null).join(', ')}`
    case 'type':
      return `must be of type ${[params['type']].flat().join(' or ')}`
    case 'maxLength':
      return `must have at most ${String(schema)} characters`
    case 'maxProperties':
      return `must have at most ${String(params['limit'])} names`
    default:
      return message ?? 'is invalid'
  }
}
