import {
  type Entry,
  type EntryError,
  type EntryErrorCode,
  entrySchema,
  hasAtMostCharacters,
  limits,
} from '@sluice/schema'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { isRawJson } from './json-text.ts'

const codesByKeyword: Readonly<Record<string, EntryErrorCode>> = {
  required: 'missing',
  type: 'wrong_type',
  enum: 'not_allowed',
  maxLength: 'too_long',
  maxProperties: 'too_many_names',
}

/** Validates the structure of entries by the schema: types, allowed values, lengths. The scanner must agree with it. */
export class EntryValidator {
  readonly #isEntry: ValidateFunction<Entry>
  readonly #explain: ValidateFunction<Entry>

  constructor() {
    this.#isEntry = compile({ allErrors: false })
    this.#explain = compile({ allErrors: true })
  }

  /** Whether `value` is an entry. Does not change it. */
  isEntry(value: unknown): value is Entry {
    // For ajv, a number that was parsed exactly is an object.
    return this.#isEntry(value) && !isRawJson(value.metadata)
  }

  /** The errors of a value that is not an entry: at least one, at most `limits.errorsPerEntryMax`. */
  explain(value: unknown): EntryError[] {
    if (isRawJson(value)) return [notAnObject('')]
    this.#explain(value)
    const errors = (this.#explain.errors ?? []).map(toEntryError)
    if (isRawJson((value as { metadata?: unknown } | null)?.metadata)) errors.push(notAnObject('/metadata'))
    // A value of the wrong type also fails its enum. The error about the type is sufficient.
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
    // Adds the schema to each error, for its message.
    verbose: allErrors,
    coerceTypes: false,
    removeAdditional: false,
    useDefaults: false,
    strict: true,
    allowUnionTypes: true,
    validateFormats: false,
  })
  // ajv counts code points one by one, which costs more than the rest of the validation of a long message.
  ajv.removeKeyword('maxLength')
  ajv.addKeyword({
    keyword: 'maxLength',
    type: 'string',
    schemaType: 'number',
    error: { message: ({ schemaCode }) => `must have at most ${String(schemaCode)} characters` },
    compile: (max: number) => (data: string) => hasAtMostCharacters(data, max),
  })
  return ajv.compile<Entry>(entrySchema)
}

function notAnObject(path: string): EntryError {
  return {
    path,
    code: 'wrong_type',
    message: path === '' ? 'must be of type object' : 'must be of type object or null',
  }
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
