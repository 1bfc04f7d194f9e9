import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** `request` bytes flow from the client to the target, `answer` bytes flow back. */
export type Direction = 'request' | 'answer'

const HOST = '127.0.0.1'
/** The limit of held bytes per connection and direction. Beyond it, the proxy stops reading, like a full network buffer. */
const HELD_BYTES_MAX = 1024 * 1024

interface Cut {
  readonly direction: Direction
  readonly afterBytes: number
}

/** The faults of a proxy. Its connections check them for every piece of data. */
interface Faults {
  held: Direction | 'both' | undefined
  cut: Cut | undefined
  /** A string in the request whose response is cut off. */
  cutAnswerTo: string | undefined
  cuts: number
}

/**
 * A TCP proxy that simulates a faulty network between two processes.
 *
 * Forwarding ⇄ holding (a black hole: connections are accepted and bytes are read, but nothing is forwarded). In addition, a cut may be armed, and
 * the open connections may be silenced. Any of them → down (connections are refused, and the open ones were reset) → up.
 */
export class FaultProxy {
  readonly #target: URL
  readonly #connections = new Set<Connection>()
  readonly #faults: Faults = { held: undefined, cut: undefined, cutAnswerTo: undefined, cuts: 0 }
  #server: Server | undefined
  /** 0 until the first start: the system then chooses a free port. */
  #port = 0

  private constructor(targetUrl: string) {
    this.#target = new URL(targetUrl)
  }

  static async open(targetUrl: string): Promise<FaultProxy> {
    const proxy = new FaultProxy(targetUrl)
    await proxy.up()
    return proxy
  }

  get port(): number {
    return this.#port
  }

  get url(): string {
    const url = new URL(this.#target)
    url.hostname = HOST
    url.port = String(this.#port)
    // A URL object adds a slash to an address without a path.
    return url.href.replace(/\/$/, '')
  }

  get cuts(): number {
    return this.#faults.cuts
  }

  heldBytes(direction: Direction): number {
    return [...this.#connections].reduce((sum, { flows }) => sum + flows[direction].heldBytes, 0)
  }

  /** Closes every connection by RST. @returns how many there were */
  reset(): number {
    const connections = [...this.#connections]
    for (const { sockets } of connections) for (const socket of sockets) socket.resetAndDestroy()
    return connections.length
  }

  hold(direction: Direction | 'both'): void {
    this.#faults.held = direction
  }

  /**
   * From now on, the connections that are open forward nothing in either direction, and stay open. New connections work. A load balancer that has
   * lost its state does the same. @returns how many there were
   */
  silence(): number {
    for (const flow of this.#flows()) flow.isSilent = true
    return this.#connections.size
  }

  /** Forwards the held bytes, and then everything that arrives. */
  resume(): void {
    this.#faults.held = undefined
    for (const flow of this.#flows()) flow.release()
  }

  /** From now on, each connection closes after it has forwarded `afterBytes` in the given direction. */
  armCut(cut: Cut): void {
    this.#faults.cut = { ...cut }
  }

  disarmCut(): void {
    this.#faults.cut = undefined
  }

  /** Forwards the next request that contains this string, and closes the connection instead of forwarding the response. */
  cutAnswerTo(text: string): void {
    this.#faults.cutAnswerTo = text
  }

  heal(): void {
    this.disarmCut()
    this.#faults.cutAnswerTo = undefined
    this.resume()
  }

  /** Resets all connections, and waits until their sockets are closed. New ones fail with ECONNREFUSED. */
  async down(): Promise<void> {
    const server = this.#server
    if (server === undefined) return
    this.#server = undefined
    const closed = [
      once(server, 'close'),
      ...Array.from(this.#connections, (connection) => connection.closed),
    ]
    server.close()
    this.reset()
    await Promise.all(closed)
  }

  /** Listens again, on the same port. Without effect if it listens. */
  async up(): Promise<void> {
    if (this.#server !== undefined) return
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client))
    this.#server = server
    server.listen(this.#port, HOST)
    await once(server, 'listening')
    this.#port = (server.address() as AddressInfo).port
  }

  #flows(): Flow[] {
    return [...this.#connections].flatMap(({ flows }) => [flows.request, flows.answer])
  }

  #accept(client: Socket): void {
    const { hostname: host, port } = this.#target
    const target = connect({ host, port: Number(port), allowHalfOpen: true, noDelay: true })
    const answer = new Flow(target, client, 'answer', this.#faults)
    const request = new Flow(client, target, 'request', this.#faults, answer)
    // `close` follows, and reports whether there was an error.
    const sockets = [client, target].map((socket) => socket.on('error', () => undefined))
    const closed = Promise.all(
      sockets.map((socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()))),
    )
    const connection = { sockets, flows: { request, answer }, closed }
    this.#connections.add(connection)
    void closed.then(() => this.#connections.delete(connection))
  }
}

interface Connection {
  readonly sockets: readonly Socket[]
  readonly flows: Readonly<Record<Direction, Flow>>
  readonly closed: Promise<unknown>
}

/**
 * One direction of a connection.
 *
 * Forwarding ⇄ holding, according to the proxy's faults (or holding until a reset, if silenced) → ended (the sender has closed) or cut (the receiver
 * gets an end in the middle of the message, and the sender a reset).
 */
class Flow {
  heldBytes = 0
  /** Whether it holds everything until the connection is reset. */
  isSilent = false
  readonly #from: Socket
  readonly #to: Socket
  readonly #direction: Direction
  readonly #faults: Faults
  /** The other direction, if this one has requests. */
  readonly #answer: Flow | undefined
  #wasCut = false
  #cutsNext = false
  #held: Buffer[] = []
  /** How the sender closed, if it has. `end` leaves the other direction open. */
  #ending: 'end' | 'close' | 'reset' | undefined
  /** The cut that `#passedBytes` counts for. */
  #cut: Cut | undefined
  #passedBytes = 0

  constructor(from: Socket, to: Socket, direction: Direction, faults: Faults, answer?: Flow) {
    this.#from = from
    this.#to = to
    this.#direction = direction
    this.#faults = faults
    this.#answer = answer
    from.on('data', (bytes: Buffer) => this.#receive(bytes))
    from.on('end', () => this.#finish('end'))
    from.on('close', (hadError) => this.#finish(hadError ? 'reset' : 'close'))
    to.on('drain', () => from.resume())
  }

  /** Forwards the held bytes, and the sender's end if it arrived in the meantime. */
  release(): void {
    if (this.#isHolding) return
    this.heldBytes = 0
    for (const bytes of this.#held.splice(0)) this.#forward(bytes)
    if (this.#ending !== undefined) this.#finish(this.#ending)
    this.#from.resume()
  }

  get #isHolding(): boolean {
    return this.isSilent || this.#faults.held === 'both' || this.#faults.held === this.#direction
  }

  #receive(bytes: Buffer): void {
    if (!this.#isHolding) return this.#forward(bytes)
    this.#held.push(bytes)
    this.heldBytes += bytes.length
    if (this.heldBytes >= HELD_BYTES_MAX) this.#from.pause()
  }

  #forward(bytes: Buffer): void {
    if (this.#wasCut || !this.#to.writable) return
    const left = this.#bytesLeft()
    if (bytes.length >= left) return this.#end(bytes.subarray(0, left))
    this.#passedBytes += bytes.length
    const { cutAnswerTo } = this.#faults
    if (this.#answer !== undefined && cutAnswerTo !== undefined && bytes.includes(cutAnswerTo)) {
      this.#faults.cutAnswerTo = undefined
      this.#answer.#cutsNext = true
    }
    if (!this.#to.write(bytes)) this.#from.pause()
  }

  #bytesLeft(): number {
    if (this.#cutsNext) return 0
    const { cut } = this.#faults
    if (cut === undefined || cut.direction !== this.#direction) return Infinity
    if (cut !== this.#cut) {
      this.#cut = cut
      this.#passedBytes = 0
    }
    return cut.afterBytes - this.#passedBytes
  }

  #finish(ending: 'end' | 'close' | 'reset'): void {
    this.#ending = ending
    if (this.#isHolding || this.#wasCut) return
    if (ending === 'reset') this.#to.resetAndDestroy()
    else if (ending === 'close') this.#to.destroySoon()
    else this.#to.end()
  }

  #end(last: Buffer): void {
    this.#wasCut = true
    this.#faults.cuts += 1
    // An RST would discard the last bytes that the receiver has not read yet. An end does not.
    this.#to.end(last)
    this.#from.resetAndDestroy()
  }
}
