import { parseJsonExactly } from '@sluice/rows'
import { createHash } from 'node:crypto'
import { Problem } from '../../problems.ts'
import { isObject } from '../entries.ts'
import type { ProtocolRequest } from '../protocol.ts'

/** Clients ask for some hundred acknowledgements at once. A question is answered in one step. */
const ACKS_BYTES_MAX = 16 * 1024
/** A number that all clients read exactly. */
const ID_BYTES = 6

/** Only requests with a channel get a number. */
export function hasChannel({ headers, query }: Pick<ProtocolRequest, 'headers' | 'query'>): boolean {
  return headers['x-splunk-request-channel'] !== undefined || query['channel'] !== undefined
}

/** The number of a request that a client may ask for later. A replay has the number of the first answer. */
export function ackIdOf(identity: string): number {
  return createHash('sha256').update(identity).digest().readUIntBE(0, ID_BYTES)
}

/**
 * Answers the question which requests are stored. All are, because a request gets its number after its events are stored.
 *
 * @throws Problem `invalid_json`, `body_too_large`
 */
export function readAcks(body: Buffer): object {
  if (body.length > ACKS_BYTES_MAX)
    throw new Problem(
      'body_too_large',
      `A question about acknowledgements may have at most ${ACKS_BYTES_MAX} bytes.`,
    )
  const acks = idsOf(body)
  if (acks === undefined) throw new Problem('invalid_json', 'Send {"acks": [numbers]}.')
  return { acks: Object.fromEntries(acks.map((id) => [String(id), true])) }
}

function idsOf(body: Buffer): readonly number[] | undefined {
  try {
    const value = parseJsonExactly(body.toString())
    const ids = isObject(value) ? value['acks'] : undefined
    return Array.isArray(ids) && ids.every((id) => Number.isSafeInteger(id)) ? (ids as number[]) : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
