import { limits } from '@sluice/schema'
import { makeBody } from './bodies.ts'
import { Draft } from './draft.ts'
import { frame } from './framing.ts'
import type { FuzzKeys, FuzzRequest } from './fuzz-request.ts'
import { headMutations } from './heads.ts'
import { happens, integer, requestRandom, type Random } from './random.ts'

/** Makes a run's requests: each from the run's seed and its own number alone, but for the keys. */
export function makeRequest(seed: number, number: number, keys: FuzzKeys): FuzzRequest {
  const random = requestRandom(seed, number)
  const body = makeBody(random, number)
  const draft = new Draft(number, body.bytes)
  draft.entries = body.entries
  draft.mutated(body.what)
  for (const [chance, mutate] of headMutations) if (happens(random, chance)) mutate(draft, random)
  if (mayBeCutOff(draft)) draft.mutated('larger than is read', 'torn')
  const isPlain = draft.mutations.length === 1
  const assemble = frame(draft, random)
  const isAbandoned = happens(random, 0.01)
  if (isAbandoned) draft.mutated('abandoned', 'abandoned')
  // Where nobody knows which answer belongs to which request, all must have bodies.
  if (draft.method === 'HEAD' && draft.ending === 'torn') draft.method = 'GET'
  const bytes = assemble(keys)
  const sent = isAbandoned ? bytes.subarray(0, integer(random, 1, bytes.length)) : bytes
  const pieces = happens(random, 0.06) ? split(sent, random) : [sent]
  if (pieces.length > 1) draft.mutated(`in ${pieces.length} pieces`)
  return {
    number,
    mutations: draft.mutations,
    pieces,
    pauseMs: pieces.length > 1 && happens(random, 0.2) ? integer(random, 1, 5) : 0,
    ending: draft.ending,
    isHead: draft.method === 'HEAD',
    requestId: draft.ending === 'keeps' || draft.ending === 'closes' ? draft.requestId : undefined,
    entries: draft.entries,
    statuses: knownStatuses(draft, isPlain && body.isGood === true),
  }
}

/** What the sockets hold without being read. */
const UNREAD_BYTES_MAX = 65_536

/** Whether the server may end the connection while the body is still being written, so that its answer is lost. */
function mayBeCutOff({ body, ending }: Draft): boolean {
  return body.length > (ending === 'keeps' ? limits.bodyBytesMax : UNREAD_BYTES_MAX)
}

function knownStatuses(draft: Draft, isGood: boolean): readonly number[] | undefined {
  if (draft.ending === 'torn' || draft.ending === 'abandoned' || draft.mutations.includes('no body'))
    return undefined
  if (isGood) return [202]
  // The key is looked at once method and path are known to be right.
  return draft.method === 'POST' && draft.target === '/v1/logs' && isFirstAuthorization(draft)
    ? draft.statuses
    : undefined
}

function isFirstAuthorization({ headers }: Draft): boolean {
  return !headers.some((header) => /^authorization/i.test(header))
}

const PIECES_MAX = 6

function split(bytes: Buffer, random: Random): Buffer[] {
  const cuts = Array.from({ length: integer(random, 1, PIECES_MAX - 1) }, () =>
    integer(random, 0, bytes.length),
  )
  const edges = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
  return edges
    .slice(1)
    .map((edge, i) => bytes.subarray(edges[i], edge))
    .filter((piece) => piece.length > 0)
}
