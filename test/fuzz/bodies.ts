import { happens, integer, pick, pickWeighted, type Random } from '@sluice/harness'
import { encodeLogs, jsonLogs } from '@sluice/harness/otlp-logs'
import { invalidEntry, validEntry } from '@sluice/rows/testing'
import { limits } from '@sluice/schema'
import * as fc from 'fast-check'
import { badBodies } from '../../apps/api/test/bad-inputs/bodies.ts'
import { badEntries } from '../../apps/api/test/bad-inputs/entries.ts'
import { anyLogs } from '../../packages/row-scanner/test/support/any-logs.ts'
import { OTLP_PROTOBUF } from '../../apps/api/src/protocols/otlp/otlp.ts'
import { problems } from '../../apps/api/src/problems.ts'
import type { ShipperName } from './fuzz-request.ts'
import { drawShipperBody } from './shipper-bodies.ts'

export interface FuzzBody {
  readonly what: string
  readonly bytes: Buffer
  readonly contentType?: string
  /** The number of entries of an intact batch, or of records of an intact OTLP request. */
  readonly entries?: number
  readonly records?: number
  /** Whether the response reports how many rows are stored. Default: true. */
  readonly isCounted?: boolean
  /** The shipper whose API it is for, and the path of this API. */
  readonly shipper?: ShipperName
  readonly target?: string
  /** The status that an otherwise valid request with this body gets, if it is known. */
  readonly status?: number
}

const VALID_ENTRIES = 2_000
const INVALID_ENTRIES = 500
const OTLP_REQUESTS = 1_000
/** Larger inputs are rare: one of 5 MB takes as long as a hundred others. */
const LARGE_CHARACTERS = 16_384
const LARGE_SHARE = 0.01

/**
 * Draws the bodies of a run. Their entries come from the generators of the property tests, and bad bodies from the list of bad inputs: the
 * fuzzer combines them with any head and framing, and sends them through a complete installation.
 */
export function bodiesOf(seed: number): (random: Random) => FuzzBody {
  const valid = fc.sample(validEntry, { seed, numRuns: VALID_ENTRIES }).map((entry) => JSON.stringify(entry))
  const generated = fc.sample(invalidEntry, { seed, numRuns: INVALID_ENTRIES })
  const invalid = bySize(
    [...generated.map(({ entry }) => JSON.stringify(entry)), ...badEntries.map(([, json]) => json)],
    ({ length }) => length,
  )
  const listed = badBodies.map(([what, body = '', code]): FuzzBody => {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body as string)
    return { what: `bad body: ${what}`, bytes, status: problems[code].status }
  })
  const bad = bySize(listed, ({ bytes }) => bytes.length)
  const otlp = fc.sample(anyLogs, { seed, numRuns: OTLP_REQUESTS })

  const drawValid = (random: Random): FuzzBody => {
    if (happens(random, 0.5))
      return { what: 'valid entry', bytes: Buffer.from(pick(random, valid)), status: 202 }
    const count = happens(random, 0.02) ? limits.entriesPerRequestMax : integer(random, 0, 4)
    const entries = Array.from({ length: count }, () => pick(random, valid))
    return { what: 'valid batch', bytes: batch(entries, random), entries: count, status: 202 }
  }

  /** One invalid entry, or a batch of valid and invalid ones. */
  const drawMixed = (random: Random): FuzzBody => {
    const isLarge = happens(random, 0.02)
    const count = isLarge ? integer(random, 90, limits.entriesPerRequestMax + 1) : integer(random, 0, 5)
    if (count === 0) return { what: 'invalid entry', bytes: Buffer.from(draw(invalid, random)) }
    const entries = Array.from({ length: count }, () =>
      happens(random, 0.3) ? pick(random, valid) : draw(invalid, random),
    )
    return { what: 'mixed batch', bytes: batch(entries, random), entries: count }
  }

  const drawDamaged = (random: Random): FuzzBody => {
    const { bytes } = happens(random, 0.5) ? drawValid(random) : drawMixed(random)
    return { what: 'damaged body', bytes: damage(bytes, random) }
  }

  /** Some of its records are invalid. */
  const drawOtlp = (random: Random): FuzzBody => {
    const logs = pick(random, otlp)
    const isJson = happens(random, 0.3)
    const bytes = isJson ? Buffer.from(jsonLogs(logs)) : encodeLogs(logs)
    const contentType = isJson ? 'application/json' : OTLP_PROTOBUF
    const what = isJson ? 'OTLP in JSON' : 'OTLP'
    if (happens(random, 0.4) && bytes.length > 0)
      return { what: `damaged ${what}`, bytes: damage(bytes, random), contentType, isCounted: false }
    const records = logs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords)).length
    return { what, bytes, contentType, records, status: 200 }
  }

  const kinds: readonly (readonly [weight: number, kind: (random: Random) => FuzzBody])[] = [
    [30, drawValid],
    [35, drawMixed],
    [23, drawDamaged],
    [12, (random) => draw(bad, random)],
    [15, drawOtlp],
    [29, drawShipperBody],
  ]
  return (random) => pickWeighted(random, kinds)(random)
}

interface Sized<T> {
  readonly normal: readonly T[]
  readonly large: readonly T[]
}

function bySize<T>(items: readonly T[], sizeOf: (item: T) => number): Sized<T> {
  const { normal = [], large = [] } = Object.groupBy(items, (item) =>
    sizeOf(item) < LARGE_CHARACTERS ? 'normal' : 'large',
  )
  return { normal, large }
}

function draw<T>({ normal, large }: Sized<T>, random: Random): T {
  return pick(random, happens(random, LARGE_SHARE) ? large : normal)
}

function batch(entries: readonly string[], random: Random): Buffer {
  const list = `[${entries.join(',')}]`
  return Buffer.from(happens(random, 0.5) ? list : `{"logs":${list}}`)
}

const tokens = ['"', '\\', '{', '}', '[', ']', ',', ':', '\0', '\n', '-', '1e400', '\\u', '\\ud83d', '\ufeff']

/** Cuts the end off, or changes up to four places: to a JSON token, to a byte that is not ASCII, or by one bit. */
function damage(sound: Buffer, random: Random): Buffer {
  if (happens(random, 0.2)) return sound.subarray(0, integer(random, 0, sound.length))
  let bytes = Buffer.from(sound)
  for (let change = integer(random, 1, 4); change > 0; change -= 1) {
    const at = integer(random, 0, bytes.length - 1)
    const end = at + integer(random, 0, 6)
    if (happens(random, 0.5)) {
      bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(pick(random, tokens)), bytes.subarray(end)])
    } else {
      bytes[at] = happens(random, 0.5)
        ? integer(random, 0x80, 0xff)
        : (bytes[at] ?? 0) ^ (1 << integer(random, 0, 7))
    }
  }
  return bytes
}
