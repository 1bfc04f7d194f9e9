/** How long clients may take and how much they may send before they are cut. */
export interface ConnectionLimits {
  readonly requestMs: number
  readonly headersMs: number
  readonly idleMs: number
  readonly silenceMs: number
  readonly checkIntervalMs: number
  readonly lingerMs: number
  readonly headersBytesMax: number
  readonly unreadBytesMax: number
}

export const connectionLimits: ConnectionLimits = {
  /** A whole request; 5 MiB in 30 s is 1.4 Mbit/s. */
  requestMs: 30_000,
  /** Its headers alone; also a new connection's first byte. */
  headersMs: 10_000,
  /** A connection between requests. Longer than the 60 s of common proxies, so that the proxy closes first. */
  idleMs: 65_000,
  /** A connection on which nothing moves during a request: one that does not read its answers. */
  silenceMs: 40_000,
  /** How often requests are held against their deadlines, and so how late they may be cut. A look costs microseconds. */
  checkIntervalMs: 5_000,
  /** From an answer that closes the connection to its end, so that a client that still sends can read it: a round trip. */
  lingerMs: 1_000,
  /** All header lines and the request line. The key, a trace's headers and what proxies add are below 4 KiB. */
  headersBytesMax: 16 * 1024,
  /** The rest of a refused body that is read away, so that the connection can go on: no more than a few packets. */
  unreadBytesMax: 64 * 1024,
}

const { requestMs, headersMs, silenceMs, checkIntervalMs } = connectionLimits
if (headersMs >= requestMs) throw new Error('headers are part of a request')
if (silenceMs <= requestMs + checkIntervalMs) {
  throw new Error('a slow request would be cut without the answer that it is owed')
}
