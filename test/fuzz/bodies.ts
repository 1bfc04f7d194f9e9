import { happens, integer, pick, pickWeighted, type Random } from '@sluice/harness'
import { encodeLogs, jsonLogs, type OtlpResourceLogs } from '@sluice/harness/otlp-logs'
import { invalidEntry, validEntry } from '@sluice/rows/testing'
import { limits } from '@sluice/schema'
import * as fc from 'fast-check'
import { badBodies } from '../../apps/api/test/bad-inputs/bodies.ts'
import { badEntries } from '../../apps/api/test/bad-inputs/entries.ts'
import { anyLogs } from '../../apps/api/test/protocols/otlp/any-logs.ts'
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
 * The bodies of a run. Their entries come from the generators of the property tests, and bad bodies from the list of bad inputs: the fuzzer combines
 * them with any head and framing, and sends them through a complete installation.
 */
export class Bodies {
  readonly #valid: readonly string[]
  readonly #invalid: Sized<string>
  readonly #bad: Sized<FuzzBody>
  readonly #otlp: readonly OtlpResourceLogs[][]

  constructor(seed: number) {
    this.#valid = fc
      .sample(validEntry, { seed, numRuns: VALID_ENTRIES })
      .map((entry) => JSON.stringify(entry))
    const invalid = fc
      .sample(invalidEntry, { seed, numRuns: INVALID_ENTRIES })
      .map(({ entry }) => JSON.stringify(entry))
    this.#invalid = bySize([...invalid, ...badEntries.map(([, json]) => json)], ({ length }) => length)
    const bad = badBodies.map(([what, body = '', code]): FuzzBody => {
      const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body as string)
      return { what: `bad body: ${what}`, bytes, status: problems[code].status }
    })
    this.#otlp = fc.sample(anyLogs, { seed, numRuns: OTLP_REQUESTS })
    this.#bad = bySize(bad, ({ bytes }) => bytes.length)
  }

  draw(random: Random): FuzzBody {
    return pickWeighted(random, this.#kinds)(random)
  }

  readonly #kinds: readonly (readonly [weight: number, kind: (random: Random) => FuzzBody])[] = [
    [30, (random) => this.#drawValid(random)],
    [35, (random) => this.#drawMixed(random)],
    [23, (random) => this.#drawDamaged(random)],
    [12, (random) => draw(this.#bad, random)],
    [15, (random) => this.#drawOtlp(random)],
    [29, drawShipperBody],
  ]

  #drawValid(random: Random): FuzzBody {
    if (happens(random, 0.5)) {
      return { what: 'valid entry', bytes: Buffer.from(pick(random, this.#valid)), status: 202 }
    }
    const count = happens(random, 0.02) ? limits.entriesPerRequestMax : integer(random, 0, 4)
    const entries = Array.from({ length: count }, () => pick(random, this.#valid))
    return { what: 'valid batch', bytes: batch(entries, random), entries: count, status: 202 }
  }

  /** One invalid entry, or a batch of valid and invalid ones. */
  #drawMixed(random: Random): FuzzBody {
    const count = happens(random, 0.02)
      ? integer(random, 90, limits.entriesPerRequestMax + 1)
      : integer(random, 0, 5)
    if (count === 0) return { what: 'invalid entry', bytes: Buffer.from(draw(this.#invalid, random)) }
    const entries = Array.from({ length: count }, () =>
      happens(random, 0.3) ? pick(random, this.#valid) : draw(this.#invalid, random),
    )
    return { what: 'mixed batch', bytes: batch(entries, random), entries: count }
  }

  #drawDamaged(random: Random): FuzzBody {
    const { bytes } = happens(random, 0.5) ? this.#drawValid(random) : this.#drawMixed(random)
    return { what: 'damaged body', bytes: damage(bytes, random) }
  }

  /** Some of its records are invalid. */
  #drawOtlp(random: Random): FuzzBody {
    const logs = pick(random, this.#otlp)
    const isJson = happens(random, 0.3)
    const bytes = isJson ? Buffer.from(jsonLogs(logs)) : encodeLogs(logs)
    const contentType = isJson ? 'application/json' : OTLP_PROTOBUF
    const what = isJson ? 'OTLP in JSON' : 'OTLP'
    if (happens(random, 0.4) && bytes.length > 0)
      return { what: `damaged ${what}`, bytes: damage(bytes, random), contentType, isCounted: false }
    const records = logs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords)).length
    return { what, bytes, contentType, records, status: 200 }
  }
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
