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

/** Docker ends the string of `log` with the newline of the line. */
export function readMessage(value: unknown, name: string): string | undefined {
  if (typeof value !== 'string') return undefined
  return name === 'log' && value.endsWith('\n') ? value.slice(0, -1) : value
}

/** A stack trace as a string, or as an array of its lines. */
export function readStack(value: unknown, name: string): string | undefined {
  if (Array.isArray(value) && value.length > 0 && value.every((line) => typeof line === 'string')) {
    return value.join('\n')
  }
  return typeof value === 'string' && (value !== '' || name === 'stack') ? value : undefined
}

export function readSource(value: unknown): string | undefined {
  return sources.find((known) => known === value)
}

export const readService = stringReader(limits.serviceCharactersMax)
export const readUrl = stringReader(limits.urlCharactersMax)
export const readPathname = stringReader(limits.pathnameCharactersMax)

function stringReader(charactersMax: number): (value: unknown) => string | undefined {
  return (value) =>
    typeof value === 'string' && hasAtMostCharacters(value, charactersMax) ? value : undefined
}
