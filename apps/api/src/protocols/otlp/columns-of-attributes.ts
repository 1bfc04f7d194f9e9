import type { Entry } from '@sluice/schema'
import { limits } from '@sluice/schema'
import type { Attributes } from './log-record.ts'

type Environment = NonNullable<Entry['environment']>

/** Allowed values, and the short forms of them that many deployments use. */
const environments: ReadonlyMap<string, Environment> = new Map([
  ['development', 'development'],
  ['dev', 'development'],
  ['staging', 'staging'],
  ['stage', 'staging'],
  ['stg', 'staging'],
  ['production', 'production'],
  ['prod', 'production'],
])

/** The current name and the earlier one. */
const ENVIRONMENT_NAMES = ['deployment.environment.name', 'deployment.environment'] as const

/**
 * Removes an attribute that becomes a column. An attribute that is not a text, or is longer than the column allows, stays where it is.
 *
 * @returns undefined if there is no such attribute
 */
export function takeText(attributes: Attributes, name: string, charactersMax: number): string | undefined {
  const value = attributes[name]
  if (typeof value !== 'string' || value === '' || !hasAtMost(value, charactersMax)) return undefined
  delete attributes[name]
  return value
}

/** Finds the environment. Removes the attribute if it has the same text as the column. */
export function takeEnvironment(attributes: Attributes): Environment | undefined {
  for (const name of ENVIRONMENT_NAMES) {
    const value = attributes[name]
    const environment = typeof value === 'string' ? environments.get(value.toLowerCase()) : undefined
    if (environment === undefined) continue
    if (environment === value) delete attributes[name]
    return environment
  }
  return undefined
}

export function takeService(attributes: Attributes): string | undefined {
  return takeText(attributes, 'service.name', limits.serviceCharactersMax)
}

/** Whether a text has at most this number of code points. */
function hasAtMost(text: string, charactersMax: number): boolean {
  if (text.length <= charactersMax) return true
  if (text.length > charactersMax * 2) return false
  let count = 0
  for (const _ of text) if (++count > charactersMax) return false
  return true
}
