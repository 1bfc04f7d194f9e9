/** How long clients may take and how much they may send before the API closes their connections. */
export const connectionLimits = {
  /** A whole request. 5 MiB in 30 s is 1.4 Mbit/s. */
  requestMs: 30_000,
  /** The headers of a request, and the first byte on a new connection. */
  headersMs: 10_000,
  /** A connection between requests. Longer than the 60 s of common proxies, so that the proxy closes first. */
  idleMs: 65_000,
  /**
   * From one byte of a response to the next, except while a request is handled: longer than an idle connection and the headers of the next
   * request may take. Node's own timeouts start again with every byte that arrives, so a client could keep a connection with a line break
   * every minute, or with requests whose responses it does not read.
   */
  staleMs: 75_000,
  /** The interval of checks for stale connections. */
  staleIntervalMs: 5_000,
  /**
   * The interval of checks for slow requests: one is closed at most this late. A check costs microseconds, and 100 for each connection
   * that it closes. With 5 s, thousands of slow connections were closed in one iteration of the event loop, which took 600 ms.
   */
  deadlineIntervalMs: 100,
  /** From a response that closes the connection to the actual close: one round trip, so that a sending client can read it. */
  lingerMs: 1_000,
  /** All header lines and the request line. The key, tracing headers and headers of proxies take less than 4 KiB. */
  headersBytesMax: 16 * 1024,
  /** The rest of a rejected body that is read and discarded to keep the connection open: only a few packets. */
  unreadBytesMax: 64 * 1024,
  /** Pipelined requests that wait on one connection. One read of the connection may contain 3,600. */
  waitingRequestsPerConnectionMax: 32,
  /** Pipelined requests that wait on all connections: 10,000 of about 5 KB are 50 MB. */
  waitingRequestsMax: 10_000,
}

export type ConnectionLimits = Readonly<typeof connectionLimits>

const { requestMs, headersMs, idleMs, staleMs } = connectionLimits
if (headersMs >= requestMs) throw new Error('headersMs must be less than requestMs')
if (staleMs < idleMs + headersMs) throw new Error('staleMs must be at least idleMs + headersMs')
