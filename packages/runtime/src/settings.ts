import { Ajv } from 'ajv'
import type { FromSchema, JSONSchema } from 'json-schema-to-ts'
import { readFileSync } from 'node:fs'

/** Thrown for an invalid environment. The message names each variable, and never a value. */
export class SettingsError extends Error {
  override name = 'SettingsError'
}

/** Environment variables by name, each with the JSON Schema of its value. A variable without a default is optional. */
export type SettingsSchema = Readonly<
  Record<
    string,
    JSONSchema & { readonly type: 'string' | 'integer' | 'boolean'; readonly description: string }
  >
>

export type SettingsOf<Schema extends SettingsSchema> = FromSchema<{
  readonly type: 'object'
  readonly properties: Schema
  readonly additionalProperties: false
}>

/** The schema of a setting that is a whole number. */
export const integerSetting = <
  const Rule extends { readonly minimum: number; readonly maximum?: number; readonly default?: number },
>(
  rule: Rule,
  description: string,
) => ({ type: 'integer', ...rule, description }) as const

/** The schema of a setting that is a string. */
export const stringSetting = <
  const Rule extends {
    readonly default?: string
    readonly pattern?: string
    readonly enum?: readonly string[]
  },
>(
  rule: Rule,
  description: string,
) => ({ type: 'string', ...rule, description }) as const

const INTEGER = /^-?\d{1,15}$/

/**
 * Reads settings from the environment and converts them to their types. An empty variable counts as absent.
 *
 * @throws SettingsError
 */
export function readSettings<const Schema extends SettingsSchema>(
  schema: Schema,
  environment: Readonly<Record<string, string | undefined>>,
): SettingsOf<Schema> {
  const data: unknown = Object.fromEntries(
    Object.entries(schema).flatMap(([name, { type }]) => {
      const value = environment[name]
      if (value === undefined || value === '') return []
      // ajv rejects an array. It would convert blanks to 0, and accept Infinity for an integer without a maximum.
      return [[name, type === 'integer' && !INTEGER.test(value) ? [] : value]]
    }),
  )
  const ajv = new Ajv({ allErrors: true, coerceTypes: true, useDefaults: true })
  const validate = ajv.compile<SettingsOf<Schema>>({ type: 'object', properties: schema })
  if (validate(data)) return data
  const reasons = (validate.errors ?? []).map(({ instancePath, message = 'is invalid', params }) => {
    const { allowedValues: choices } = params as { readonly allowedValues?: readonly string[] }
    return `${instancePath.slice(1)} ${choices === undefined ? message : `must be one of ${choices.join(', ')}`}`
  })
  throw new SettingsError(`invalid settings: ${reasons.join('; ')}`)
}

/**
 * Reads a file of PEM certificates.
 *
 * @param setting the setting that names the file
 * @throws SettingsError if the file cannot be read or contains no certificate
 */
export function readCertificates(setting: string, file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new SettingsError(`${setting} cannot be read: ${(error as Error).message}`)
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw new SettingsError(`${setting} contains no PEM certificate`)
}
