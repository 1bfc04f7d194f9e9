import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** `request` goes from who connects to who listens, `answer` back. */
export type Direction = 'request' | 'answer'

const HOST = '127.0.0.1'
/** What a black hole takes in from one connection, in one direction; then it stops reading, as a full buffer does. */
const HELD_BYTES_MAX = 1024 * 1024

interface Cut {
  readonly direction: Direction
  readonly afterBytes: number
}

/** What a link does to the bytes that pass it. Its connections look it up at every piece. */
interface Mood {
  held: Direction | 'both' | undefined
  cut: Cut | undefined
}

/**
 * A TCP proxy that stands for the network between two processes.
 *
 * Forwarding ⇄ holding (a black hole: connections are accepted, bytes are taken and go nowhere). Beside either, a cut may
 * be armed: each connection then ends after so many more bytes.
 */
export class Link {
  readonly name: string
  readonly #server: Server
  readonly #connections = new Set<Connection>()
  readonly #mood: Mood = { held: undefined, cut: undefined }
  #cuts = 0

  private constructor(name: string, targetPort: number) {
    this.name = name
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      const target = connect({ host: HOST, port: targetPort, allowHalfOpen: true, noDelay: true })
      const connection: Connection = new Connection(client, target, this.#mood, {
        onClose: () => this.#connections.delete(connection),
        onCut: () => {
          this.#cuts += 1
        },
      })
      this.#connections.add(connection)
    })
  }

  /** Opens a link to a port of this machine. */
  static async open(name: string, targetPort: number): Promise<Link> {
    const link = new Link(name, targetPort)
    await new Promise<void>((resolve, reject) => {
      link.#server.once('error', reject)
      link.#server.listen(0, HOST, resolve)
    })
    return link
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** How many connections were cut so far. */
  get cuts(): number {
    return this.#cuts
  }

  /** How many bytes the black hole has taken in. */
  heldBytes(direction: Direction): number {
    let sum = 0
    for (const connection of this.#connections) sum += connection.heldBytes(direction)
    return sum
  }

  /** Ends every connection by RST. @returns how many there were */
  reset(): number {
    const connections = [...this.#connections]
    for (const connection of connections) connection.reset()
    return connections.length
  }

  hold(direction: Direction | 'both'): void {
    this.#mood.held = direction
  }

  /** Forwards again, and what was held first. */
  resume(): void {
    this.#mood.held = undefined
    for (const connection of this.#connections) connection.release()
  }

  armCut(cut: Cut): void {
    this.#mood.cut = { ...cut }
  }

  disarmCut(): void {
    this.#mood.cut = undefined
  }

  /** Makes it a good network again. */
  heal(): void {
    this.disarmCut()
    this.resume()
  }

  async close(): Promise<void> {
    this.reset()
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
    })
  }
}

interface ConnectionEvents {
  readonly onClose: () => void
  readonly onCut: () => void
}

/** A client's connection and the one to the target. */
class Connection {
  readonly #sockets: readonly [client: Socket, target: Socket]
  readonly #flows: Readonly<Record<Direction, Flow>>

  constructor(client: Socket, target: Socket, mood: Mood, { onClose, onCut }: ConnectionEvents) {
    this.#sockets = [client, target]
    this.#flows = {
      request: new Flow(client, target, 'request', mood, onCut),
      answer: new Flow(target, client, 'answer', mood, onCut),
    }
    let open = this.#sockets.length
    for (const socket of this.#sockets) {
      // What went wrong shows in `close`.
      socket.on('error', () => undefined)
      socket.on('close', () => {
        open -= 1
        if (open === 0) onClose()
      })
    }
  }

  heldBytes(direction: Direction): number {
    return this.#flows[direction].heldBytes
  }

  release(): void {
    this.#flows.request.release()
    this.#flows.answer.release()
  }

  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }
}

/**
 * One direction of a connection.
 *
 * Forwarding ⇄ holding, as the link's mood says → ended (the sender has said all) or cut (so many bytes went through: the
 * receiver gets an end amid the message, the sender a reset).
 */
class Flow {
  readonly #from: Socket
  readonly #to: Socket
  readonly #direction: Direction
  readonly #mood: Mood
  readonly #onCut: () => void
  #wasCut = false
  #held: Buffer[] = []
  #heldBytes = 0
  /** How the sender ended, if it has: `end` leaves the other direction open. */
  #ending: 'end' | 'close' | 'reset' | undefined
  /** The cut that `#passedBytes` counts for. */
  #cut: Cut | undefined
  #passedBytes = 0

  constructor(from: Socket, to: Socket, direction: Direction, mood: Mood, onCut: () => void) {
    this.#from = from
    this.#to = to
    this.#direction = direction
    this.#mood = mood
    this.#onCut = onCut
    from.on('data', (bytes: Buffer) => this.#take(bytes))
    from.on('end', () => this.#finish('end'))
    from.on('close', (hadError) => this.#finish(hadError ? 'reset' : 'close'))
    to.on('drain', () => this.#from.resume())
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Forwards what was held, if it is not to be held any more, and the end if it has come meanwhile. */
  release(): void {
    if (this.#isHolding) return
    const held = this.#held
    this.#held = []
    this.#heldBytes = 0
    for (const bytes of held) this.#forward(bytes)
    if (this.#ending !== undefined) this.#finish(this.#ending)
    this.#from.resume()
  }

  get #isHolding(): boolean {
    return this.#mood.held === 'both' || this.#mood.held === this.#direction
  }

  #take(bytes: Buffer): void {
    if (!this.#isHolding) return this.#forward(bytes)
    this.#held.push(bytes)
    this.#heldBytes += bytes.length
    if (this.#heldBytes >= HELD_BYTES_MAX) this.#from.pause()
  }

  #forward(bytes: Buffer): void {
    if (this.#wasCut || !this.#to.writable) return
    const left = this.#bytesLeft()
    if (bytes.length >= left) return this.#end(bytes.subarray(0, left))
    this.#passedBytes += bytes.length
    if (!this.#to.write(bytes)) this.#from.pause()
  }

  #bytesLeft(): number {
    const { cut } = this.#mood
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
    this.#onCut()
    // An RST would take the last bytes away from a receiver that has not read them yet; an end does not.
    this.#to.end(last)
    this.#from.resetAndDestroy()
  }
}
