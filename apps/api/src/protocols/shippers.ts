// What the APIs of shippers have in common: keys, and responses.
import type { EntryError } from '@sluice/schema'
import type { Answer } from '../answer.ts'
import { Problem, type ProblemCode, problems } from '../problems.ts'
import type { Protocol } from './protocol.ts'

const KEY_PREFIX = 'slk_'

/**
 * Makes a bearer token of an Authorization header with another scheme. A key has neither a colon nor an equals sign, so it is never
 * mistaken for Base64 of a name and a key.
 *
 * @param schemes the schemes whose credentials are the key itself, in lower case
 * @param encodedSchemes the schemes whose credentials are Base64 of `name:key` or of the key, in lower case
 */
export function asBearer(
  header: string | undefined,
  schemes: readonly string[],
  encodedSchemes: readonly string[],
): string | undefined {
  const [, scheme = '', credentials = ''] = /^([A-Za-z]+) +(\S+)$/.exec(header ?? '') ?? []
  const name = scheme.toLowerCase()
  if (schemes.includes(name) && credentials.startsWith(KEY_PREFIX)) return `Bearer ${credentials}`
  if (!encodedSchemes.includes(name)) return header
  const decoded = Buffer.from(credentials, 'base64').toString('latin1')
  return `Bearer ${decoded.slice(decoded.lastIndexOf(':') + 1)}`
}

/** Rejects requests with the key in a parameter of the URL. @param header where it belongs */
export function rejectKeyInUrl(parameter: string, header: string): NonNullable<Protocol['check']> {
  return ({ query }) => {
    if (query[parameter] === undefined) return
    throw new Problem('unauthorized', `Send the key in the ${header}. A key in a URL ends up in logs.`)
  }
}

/** The status of a rejected request. Shippers drop a batch after 400, and some divide it after 413. */
export function statusOf(code: ProblemCode): number {
  return code === 'too_many_entries' ? 413 : problems[code].status
}

export function jsonAnswer(status: number, body: object): Answer {
  return { status, type: 'application/json', body: JSON.stringify(body) }
}

/** @param record what an error without a path is about */
export function describeError({ path, message }: EntryError, record: string): string {
  return `${path === '' ? record : path} ${message}`.trimStart()
}
