import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/**
 * Stands between a client and Redis, and does what networks do.
 *
 * Open (passes all on) → frozen (takes connections and bytes, passes nothing on) → open. Open or frozen → down (refuses
 * connections, has cut all there were) → open.
 */
export class TcpProxy {
  readonly #target: { readonly host: string; readonly port: number }
  readonly #pairs = new Set<{ readonly client: Socket; readonly server: Socket }>()
  #listener: Server | undefined
  #port = 0
  #isFrozen = false
  #cutAfter: string | undefined
  /** How many connections were cut between a request and its answer. */
  cuts = 0

  private constructor(target: URL) {
    this.#target = { host: target.hostname, port: Number(target.port) }
  }

  static async to(redisUrl: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(redisUrl))
    await proxy.up()
    return proxy
  }

  /** The same database as behind it. */
  urlFor(redisUrl: string): string {
    const url = new URL(redisUrl)
    url.hostname = '127.0.0.1'
    url.port = String(this.#port)
    return url.href
  }

  /** Lets the next request that holds this text through, and cuts the connection in place of the answer. */
  cutAfter(text: string): void {
    this.#cutAfter = text
  }

  freeze(): void {
    this.#isFrozen = true
    for (const { client, server } of this.#pairs) for (const socket of [client, server]) socket.pause()
  }

  thaw(): void {
    this.#isFrozen = false
    for (const { client, server } of this.#pairs) for (const socket of [client, server]) socket.resume()
  }

  async down(): Promise<void> {
    const listener = this.#listener
    if (listener === undefined) return
    this.#listener = undefined
    const closed = once(listener, 'close')
    listener.close()
    for (const { client, server } of this.#pairs) for (const socket of [client, server]) socket.destroy()
    await closed
  }

  async up(): Promise<void> {
    const listener = createServer((client) => this.#accept(client))
    listener.listen(this.#port, '127.0.0.1')
    await once(listener, 'listening')
    this.#listener = listener
    this.#port = (listener.address() as AddressInfo).port
  }

  #accept(client: Socket): void {
    const server = connect(this.#target)
    const pair = { client, server }
    this.#pairs.add(pair)
    let cutsNextAnswer = false
    client.on('data', (data) => {
      if (this.#cutAfter !== undefined && data.includes(this.#cutAfter)) {
        this.#cutAfter = undefined
        cutsNextAnswer = true
      }
      server.write(data)
    })
    server.on('data', (data) => {
      if (cutsNextAnswer) {
        this.cuts += 1
        client.destroy()
      } else client.write(data)
    })
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => undefined)
      one.on('close', () => {
        this.#pairs.delete(pair)
        other.destroy()
      })
      if (this.#isFrozen) one.pause()
    }
  }
}
