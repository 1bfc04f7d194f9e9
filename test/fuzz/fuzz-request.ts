import type { FuzzBody } from './bodies.ts'

export type ShipperName = 'elasticsearch' | 'loki' | 'splunk' | 'datadog'

/**
 * What a request does to its connection, from the best to the worst:
 *
 * - `keeps`: the request is complete and its framing is valid. It gets one response, and another request may follow.
 * - `closes`: it gets one response, and is the last request of its connection.
 * - `torn`: where it ends is ambiguous. The client closes its sending direction, and reads to the end.
 * - `abandoned`: the client closes the connection as soon as the request is written.
 */
export type Ending = 'keeps' | 'closes' | 'torn' | 'abandoned'

const severity: readonly Ending[] = ['keeps', 'closes', 'torn', 'abandoned']

/** The bytes of a request, and what is known about its response. */
export interface FuzzRequest {
  readonly number: number
  /** How the request differs from a normal one, for the report. */
  readonly mutations: readonly string[]
  /** Written one after another, as separate TCP segments. */
  readonly pieces: readonly Buffer[]
  readonly pauseMs: number
  readonly ending: Ending
  /** The response to a HEAD request has no body. */
  readonly isHead: boolean
  readonly requestId: string | undefined
  /** The number of entries in a batch, if it is known: the sum of the accepted and rejected ones. */
  readonly entries: number | undefined
  /** The number of records of an OTLP request, if it is known: the sum of the stored and rejected ones. */
  readonly records?: number | undefined
  readonly statuses: readonly number[] | undefined
  /** The shipper whose API the request is for. Undefined for entries and OTLP. */
  readonly shipper?: ShipperName | undefined
  /** Whether its response reports how many rows it has. If not, it has the key of `torn`. */
  readonly isCounted?: boolean
}

/** The API keys of requests. All have the same length. */
export interface FuzzKeys {
  /** For requests whose responses are all read: the accepted rows must equal the rows of this key's project. */
  readonly exact: string
  /** For requests whose responses may be lost. */
  readonly torn: string
  readonly orphan: string
  readonly revoked: string
  /** A key without the scope `ingest`. */
  readonly reader: string
}

/** A request under construction: valid at first, then changed by mutations. */
export class Draft {
  readonly number: number
  method = 'POST'
  target: string
  version = 'HTTP/1.1'
  /** Without Authorization, and without the headers of the body's length: these are added at the end. */
  headers: string[] = ['Host: localhost']
  contentType: string | undefined
  requestId: string | undefined
  /** `valid` is the key for the ending. */
  authorization: (keys: FuzzKeys, valid: string) => string | undefined = (_keys, valid) => `Bearer ${valid}`
  body: Buffer
  entries: number | undefined
  records: number | undefined
  statuses: readonly number[] | undefined
  shipper: ShipperName | undefined
  isCounted: boolean
  readonly mutations: string[]
  #ending: Ending = 'keeps'

  constructor(number: number, { what, bytes, contentType, ...known }: FuzzBody) {
    this.number = number
    this.body = bytes
    this.requestId = `f-${number}`
    this.contentType = contentType ?? 'application/json'
    this.target = known.target ?? '/v1/logs'
    this.shipper = known.shipper
    this.entries = known.entries
    this.records = known.records
    this.isCounted = known.isCounted ?? true
    this.mutations = [what]
  }

  get ending(): Ending {
    return this.#ending
  }

  /** Records that it is not known any more what the body contains. */
  forgetContent(): void {
    this.entries = undefined
    this.records = undefined
    this.isCounted = false
  }

  get isExact(): boolean {
    return this.#ending === 'keeps' || this.#ending === 'closes'
  }

  /** Records a mutation, and what it does to the connection. */
  mutated(what: string, ending: Ending = 'keeps'): void {
    this.mutations.push(what)
    if (severity.indexOf(ending) > severity.indexOf(this.#ending)) this.#ending = ending
  }

  head(keys: FuzzKeys): string {
    const valid = this.isExact && this.isCounted ? keys.exact : keys.torn
    const authorization = this.authorization(keys, valid)
    const lines = [`${this.method} ${this.target} ${this.version}`, ...this.headers]
    if (authorization !== undefined && this.shipper === 'datadog')
      lines.push(`DD-API-KEY: ${authorization.replace(/^Bearer /, '')}`)
    else if (authorization !== undefined) lines.push(`Authorization: ${authorization}`)
    if (this.contentType !== undefined) lines.push(`Content-Type: ${this.contentType}`)
    if (this.requestId !== undefined) lines.push(`X-Request-Id: ${this.requestId}`)
    return `${lines.join('\r\n')}\r\n`
  }
}
