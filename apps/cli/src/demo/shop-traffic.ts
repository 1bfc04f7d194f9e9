interface DemoEntry {
  readonly timestamp: string
  readonly level: string
  readonly service: string
  readonly environment: 'production'
  readonly message: string
  readonly pathname?: string
  readonly stack?: string
  readonly metadata: object
}

const pages = ['/', '/products', '/products/17', '/products/42', '/search', '/cart']
const regions = ['eu-west', 'eu-north', 'us-east']
const STACK = `PaymentTimeoutError: the payment provider did not answer within 3000 ms
    at PaymentClient.charge (/app/src/payment-client.ts:48:13)
    at async placeOrder (/app/src/orders.ts:112:21)
    at async handleCheckout (/app/src/routes/checkout.ts:31:17)
    at async Server.onRequest (/app/src/server.ts:74:5)`

/** Requests to a small shop of three services: web, checkout and worker. The entries of a request have its id. */
export class ShopTraffic {
  readonly #random: () => number
  #orders = 1_000

  constructor(random: () => number) {
    this.#random = random
  }

  /** The entries of one request, oldest first. @param isOutage whether the payment provider does not answer */
  request(startMs: number, isOutage: boolean): DemoEntry[] {
    const requestId = `req-${this.#whole(0x1000_0000, 0xffff_ffff).toString(16)}`
    const user = { id: this.#whole(1, 500) }
    const region = this.#oneOf(regions)
    const entries: DemoEntry[] = []
    let atMs = startMs
    const add = (service: string, level: string, message: string, metadata = {}, rest = {}): void => {
      const timestamp = new Date(atMs).toISOString()
      const common = { timestamp, level, service, environment: 'production', message } as const
      entries.push({ ...common, ...rest, metadata: { request_id: requestId, user, region, ...metadata } })
    }
    const respond = (method: string, pathname: string, status: number): void => {
      const durationMs = atMs - startMs
      const level = status >= 500 ? 'error' : status >= 400 ? 'warn' : 'info'
      const http = { method, status, duration_ms: durationMs }
      add('web', level, `${method} ${pathname} ${status} in ${durationMs} ms`, { http }, { pathname })
    }
    if (this.#random() < 0.6) {
      const isMissing = this.#random() < 0.05
      atMs += this.#whole(4, 90)
      respond('GET', isMissing ? '/products/999' : this.#oneOf(pages), isMissing ? 404 : 200)
      return entries
    }
    const order = { id: ++this.#orders, total_cents: this.#whole(500, 25_000) }
    add('checkout', 'debug', `Cart loaded, ${this.#whole(1, 6)} items`, { order })
    if (isOutage && this.#random() < 0.8) {
      atMs += 3_000
      add(
        'checkout',
        'error',
        `Order ${order.id} failed: payment timeout after 3000 ms`,
        { order },
        { stack: STACK },
      )
      respond('POST', '/checkout', 502)
      atMs += this.#whole(200, 900)
      add('worker', 'warn', `Retrying the payment of order ${order.id}`, { order, job: { attempt: 2 } })
      return entries
    }
    atMs += this.#whole(60, 400)
    add('checkout', 'success', `Order ${order.id} placed`, { order })
    respond('POST', '/checkout', 201)
    atMs += this.#whole(100, 2_000)
    add('worker', 'info', `Sent the confirmation of order ${order.id}`, { order, job: { attempt: 1 } })
    return entries
  }

  #whole(min: number, max: number): number {
    return min + Math.floor(this.#random() * (max - min + 1))
  }

  #oneOf(values: readonly string[]): string {
    return values[this.#whole(0, values.length - 1)] ?? ''
  }
}
