import { seededRandom } from '@sluice/harness/random'
import { entrySource } from '../entries/templates.ts'
import type { Entry } from '@sluice/schema'
import type { PreparedRequest } from './http-connection.ts'
import type { PoolFacts, Preparation } from './protocol.ts'
import { otlpBody } from './otlp-body.ts'
import type { BodyFormat, RequestShare } from './scenarios.ts'

/** Distinct entries of a pool, about 40 MB: far more than one compressed chunk or one inserted batch contains. */
const entriesMax = 100_000
/** Distinct requests of a pool. */
const requestsMax = 20_000

/** Requests that are built before the first one is sent, so that sending one costs little more than a system call. */
export class RequestPool {
  readonly facts: PoolFacts
  readonly #requests: readonly PreparedRequest[]
  #next = 0

  private constructor(requests: readonly PreparedRequest[], facts: PoolFacts) {
    this.#requests = requests
    this.facts = facts
  }

  static build({ url, apiKey, requests, format = 'json', seed }: Preparation): RequestPool {
    const random = seededRandom(seed)
    const nextEntry = entrySource(random, Date.now())
    const head = requestHead(new URL(url), apiKey, contentTypes[format])
    const built: PreparedRequest[] = []
    let entries = 0
    let bodyBytes = 0
    while (built.length < requestsMax && entries < entriesMax) {
      const count = pickSize(requests, random())
      const body = bodyOf(Array.from({ length: count }, nextEntry), format)
      built.push({ bytes: Buffer.concat([head(body.length), body]), entries: count })
      entries += count
      bodyBytes += body.length
    }
    return new RequestPool(built, { requests: built.length, entries, bytesPerEntry: bodyBytes / entries })
  }

  get entriesPerRequest(): number {
    return this.facts.entries / this.facts.requests
  }

  /** The next request, in an endless cycle. */
  next(): PreparedRequest {
    const request = this.#requests[this.#next]
    if (request === undefined) throw new Error('the pool is empty')
    this.#next = (this.#next + 1) % this.#requests.length
    return request
  }
}

export const contentTypes: Readonly<Record<BodyFormat, string>> = {
  json: 'application/json',
  otlp: 'application/x-protobuf',
}

function requestHead(url: URL, apiKey: string, contentType: string): (bodyBytes: number) => Buffer {
  const fixed =
    `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${apiKey}\r\n` +
    `Content-Type: ${contentType}\r\nUser-Agent: sluice-bench\r\nAccept: ${contentType}\r\n`
  return (bodyBytes) => Buffer.from(`${fixed}Content-Length: ${bodyBytes}\r\n\r\n`)
}

export function bodyOf(entries: readonly Entry[], format: BodyFormat): Buffer {
  if (format === 'otlp') return otlpBody(entries)
  return Buffer.from(JSON.stringify(entries.length === 1 ? entries[0] : { logs: entries }))
}

/** @param point 0 ≤ point < 1 */
function pickSize(shares: readonly RequestShare[], point: number): number {
  let sum = 0
  for (const { share, entries } of shares) {
    sum += share
    if (point < sum) return entries
  }
  return shares.at(-1)?.entries ?? 1
}
