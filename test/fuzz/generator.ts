import { happens, integer, type Random, seededRandom } from '@sluice/harness'
import { limits } from '@sluice/schema'
import { bodiesOf, type FuzzBody } from './bodies.ts'
import { frame } from './framing.ts'
import { Draft, type FuzzKeys, type FuzzRequest } from './fuzz-request.ts'
import { headMutations } from './heads.ts'

/** Makes the requests of a run. Except for the keys, a request depends only on the seed of the run and on its number. */
export function requestMaker(seed: number, keys: FuzzKeys): (number: number) => FuzzRequest {
  const draw = bodiesOf(seed)
  return (number) => {
    // Two odd factors: neighbouring seeds and neighbouring numbers begin with different values.
    const random = seededRandom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(number, 0x85ebca6b))
    const body = draw(random)
    const draft = new Draft(number, body)
    for (const [probability, mutate] of headMutations) {
      if (happens(random, probability)) mutate(draft, random)
    }
    if (mayBeCutOff(draft)) draft.mutated('larger than the server reads', 'torn')
    const isHeadNormal = draft.mutations.length === 1
    const assemble = frame(draft, random)
    const isAbandoned = happens(random, 0.01)
    if (isAbandoned) draft.mutated('abandoned', 'abandoned')
    // Where responses cannot be assigned to requests, all of them must have bodies.
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
      requestId: draft.isExact ? draft.requestId : undefined,
      entries: draft.entries,
      records: draft.isExact ? draft.records : undefined,
      statuses: knownStatuses(draft, isHeadNormal ? body : undefined),
      // Another target has responses in its own form.
      shipper: draft.target === body.target ? draft.shipper : undefined,
      isCounted: draft.isCounted,
    }
  }
}

/** How much the sockets hold without a reader. */
const UNREAD_BYTES_MAX = 65_536

/** Whether the server may close the connection while the body is being written. Its response would then be lost. */
function mayBeCutOff({ body, ending }: Draft): boolean {
  return body.length > (ending === 'keeps' ? limits.bodyBytesMax : UNREAD_BYTES_MAX)
}

function knownStatuses(draft: Draft, body: FuzzBody | undefined): readonly number[] | undefined {
  if (!draft.isExact || draft.mutations.includes('no body')) return undefined
  if (body !== undefined) return body.status === undefined ? undefined : [body.status]
  // The API checks the key only after the method and the path.
  const hasOtherKey = draft.headers.some((header) => /^authorization/i.test(header))
  return draft.method === 'POST' && draft.target === '/v1/logs' && !hasOtherKey ? draft.statuses : undefined
}

const PIECES_MAX = 6

function split(bytes: Buffer, random: Random): Buffer[] {
  const count = integer(random, 1, PIECES_MAX - 1)
  const cuts = Array.from({ length: count }, () => integer(random, 0, bytes.length))
  const edges = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
  const pieces = edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge))
  return pieces.filter((piece) => piece.length > 0)
}
