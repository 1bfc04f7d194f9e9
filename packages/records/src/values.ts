import { environments, hasAtMostCharacters, limits, sources } from '@sluice/schema/limits'

export type Environment = (typeof environments)[number]

/** The names that deployments give to each environment of the contract, in lower case. */
const environmentNames: Readonly<Record<Environment, readonly string[]>> = {
  development: ['development', 'develop', 'dev'],
  staging: ['staging', 'stage', 'stg'],
  production: ['production', 'prod', 'prd'],
}
export const environmentsByName: ReadonlyMap<string, Environment> = new Map(
  environments.flatMap((environment) =>
    environmentNames[environment].map((name): [string, Environment] => [name, environment]),
  ),
)
/** The longest name is far shorter. */
const ENVIRONMENT_CHARACTERS_MAX = 32

export function readEnvironment(value: unknown): Environment | undefined {
  if (typeof value !== 'string' || value.length > ENVIRONMENT_CHARACTERS_MAX) return undefined
  return environmentsByName.get(value.toLowerCase())
}

/** A stack trace as a string, or as an array of its lines. */
export function readStack(value: unknown): string | undefined {
  const isLines = Array.isArray(value) && value.length > 0 && value.every((line) => typeof line === 'string')
  if (isLines) return value.join('\n')
  return typeof value === 'string' ? value : undefined
}

/** A string that the contract allows in a field. */
export function readString(value: unknown, field: string): string | undefined {
  if (field === 'source') return sources.find((known) => known === value)
  const charactersMax = limits[`${field as 'service' | 'url' | 'pathname'}CharactersMax`]
  return typeof value === 'string' && hasAtMostCharacters(value, charactersMax) ? value : undefined
}
