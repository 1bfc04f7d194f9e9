const STACK = `PaymentTimeoutError: the payment provider did not answer within 3000 ms
    at PaymentClient.charge (/app/src/payment-client.ts:48:13)
    at async placeOrder (/app/src/orders.ts:112:21)
    at async handleCheckout (/app/src/routes/checkout.ts:31:17)
    at async Server.onRequest (/app/src/server.ts:74:5)`

const pages = ['/', '/products', '/products/17', '/products/42', '/search', '/cart'] as const

/**
 * The entries of one request to a small shop of three services, web, checkout and worker, as lines of JSON, oldest first. All have the id of the request.
 *
 * @param isOutage whether the payment provider of the shop does not answer
 */
export function shopRequest(startMs: number, isOutage: boolean, random: () => number): string[] {
  const whole = (min: number, max: number): number => min + Math.floor(random() * (max - min + 1))
  const common = {
    request_id: `req-${whole(0x1000_0000, 0xffff_ffff).toString(16)}`,
    user: { id: whole(1, 500) },
  }
  const entries: string[] = []
  let atMs = startMs
  const add = (service: string, level: string, message: string, metadata: object, stack?: string): void => {
    const timestamp = new Date(atMs).toISOString()
    const entry = { timestamp, level, service, environment: 'production', message, stack }
    entries.push(`${JSON.stringify({ ...entry, metadata: { ...common, ...metadata } })}\n`)
  }
  const respond = (method: string, path: string, status: number): void => {
    const http = { method, path, status, duration_ms: atMs - startMs }
    const level = status >= 500 ? 'error' : status >= 400 ? 'warn' : 'info'
    add('web', level, `${method} ${path} ${status} in ${http.duration_ms} ms`, { http })
  }
  // Those who cannot pay try again.
  if (random() < (isOutage ? 0.2 : 0.6)) {
    atMs += whole(4, 90)
    const path = pages[whole(0, pages.length)]
    respond('GET', path ?? '/products/999', path === undefined ? 404 : 200)
    return entries
  }
  const order = { id: whole(10_000, 99_999), total_cents: whole(500, 25_000) }
  add('checkout', 'debug', `Cart loaded, ${whole(1, 6)} items`, { order })
  if (isOutage && random() < 0.8) {
    atMs += 3_000
    add('checkout', 'error', `Order ${order.id} failed: payment timeout after 3000 ms`, { order }, STACK)
    respond('POST', '/checkout', 502)
    atMs += whole(200, 900)
    add('worker', 'warn', `Retrying the payment of order ${order.id}`, { order, attempt: 2 })
    return entries
  }
  atMs += whole(60, 400)
  add('checkout', 'success', `Order ${order.id} placed`, { order })
  respond('POST', '/checkout', 201)
  atMs += whole(100, 2_000)
  add('worker', 'info', `Sent the confirmation of order ${order.id}`, { order, attempt: 1 })
  return entries
}

/** Somewhat less than the 15 minutes that `logs` shows. */
const PAST_MS = 870_000

/** Whether the payment provider of the shop fails in this part of a time, which is less than 1. */
export const isOutage = (part: number): boolean => part >= 0.45 && part < 0.55

/** About as many entries of the last 15 minutes, with a burst of errors in the middle. */
export function* pastOfShop(endMs: number, entries: number, random: () => number): Generator<string> {
  for (let count = 0; count < entries;) {
    const part = count / entries
    const request = shopRequest(endMs - PAST_MS * (1 - part), isOutage(part), random)
    count += request.length
    yield* request
  }
}
