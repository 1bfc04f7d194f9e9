import { pause, postHead, postText, seededRandom } from '@sluice/harness'
import { generateApiKey } from '@sluice/projects'
import { limits } from '@sluice/schema'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { zstdCompressSync } from 'node:zlib'
import { drawCostlyBody, writeCostlyBody } from './costly-body.ts'

/** An API process that is attacked, and what the attackers have of it. */
export interface Target {
  readonly port: number
  /** A key of the attackers' project. */
  readonly key: string
  /** All connections of the attack. */
  readonly sockets: Socket[]
  /** Aborts when the attack is over. */
  readonly over: AbortSignal
}

/** Opens connections and attacks. Resolves when all is sent that does not follow from responses. */
export type Attack = (target: Target) => Promise<void>

/** Less than the backlog of the server. */
const OPENED_AT_ONCE = 100
const SLOW_CONNECTIONS = 10_000
const SLOW_BYTES = 8 * 1024
const SLOW_INTERVAL_MS = 2_000
const OPENED_INTERVAL_MS = 20
/** The attackers share the processors with what they attack. */
const REPEAT_DELAY_MS = 20
const COSTLY_BODIES = 40
const COSTLY_SEED = 14

const entry = '{"level":"info","message":"m"}'
const page = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\n\r\n'

export const attacks: Readonly<Record<string, Attack>> = {
  pages: async (target) => {
    for (const socket of await open(target, 11)) {
      socket.pause()
      socket.write(page.repeat(2_000))
    }
  },
  heads: async (target) => {
    for (const socket of await open(target, 200)) {
      socket.pause()
      socket.write(page.repeat(20) + 'GET / HTTP/1.1\r\n\r\n'.repeat(3_600))
    }
  },
  bodies: async (target) => {
    const body = Buffer.alloc(limits.bodyBytesMax - 1, ' ')
    for (const socket of await open(target, 200)) {
      socket.write(postHead(target.key, [`Content-Length: ${limits.bodyBytesMax}`]))
      socket.write(body)
    }
  },
  zstd: async (target) => {
    const body = zstdCompressSync(Buffer.from(entry.padEnd(limits.bodyBytesMax)))
    await repeat(target, 64, () => postZstd(target.key, body))
  },
  costly: async (target) => {
    const bodies = (costlyBodies ??= drawCostlyBodies())
    await repeat(target, 32, (index, sent) =>
      postZstd(target.key, bodies[(index + sent) % bodies.length] ?? Buffer.alloc(0)),
    )
  },
  empty: async (target) => {
    await repeat(target, 16, (index, sent) =>
      Buffer.from(postText(target.key, '[]', [`Idempotency-Key: ${index}-${sent}-${Date.now()}`])),
    )
  },
  guesses: async (target) => {
    await repeat(target, 16, () => Buffer.from(postText(generateApiKey(), entry)))
  },
  slow: async (target) => {
    const head = (index: number): string =>
      index % 2 === 0
        ? postHead(target.key, [`X-Note: ${'a'.repeat(SLOW_BYTES)}`]).slice(0, -4)
        : postHead(target.key, [`Content-Length: ${SLOW_BYTES * 2}`]) + ' '.repeat(SLOW_BYTES)
    // All of them at once would be another attack, on the operating system: see docs/overload.md.
    const slow: Socket[][] = []
    while (slow.length < SLOW_CONNECTIONS / OPENED_AT_ONCE && !target.over.aborted) {
      const opened = await open(target, OPENED_AT_ONCE)
      for (const [index, socket] of opened.entries()) socket.write(head(index))
      slow.push(opened)
      await pause(OPENED_INTERVAL_MS)
    }
    while (!target.over.aborted) {
      for (const group of slow) {
        for (const socket of group) if (socket.writable) socket.write(' ')
        await pause(SLOW_INTERVAL_MS / slow.length)
      }
    }
  },
}

let costlyBodies: readonly Buffer[] | undefined

/** As zstd. Drawn once, because this takes seconds. */
function drawCostlyBodies(): Buffer[] {
  const random = seededRandom(COSTLY_SEED)
  return Array.from({ length: COSTLY_BODIES }, () =>
    zstdCompressSync(writeCostlyBody(drawCostlyBody(random))),
  )
}

/** Sends the next request on each connection soon after a response. */
async function repeat(
  target: Target,
  connections: number,
  request: (index: number, sent: number) => Buffer,
): Promise<void> {
  for (const [index, socket] of (await open(target, connections)).entries()) {
    let sent = 0
    const send = (): void => {
      if (socket.writable) socket.write(request(index, (sent += 1)))
    }
    socket.on('data', () => setTimeout(send, REPEAT_DELAY_MS))
    send()
  }
}

function postZstd(key: string, body: Buffer): Buffer {
  const head = postHead(key, ['Content-Encoding: zstd', `Content-Length: ${body.length}`])
  return Buffer.concat([Buffer.from(head), body])
}

async function open({ port, sockets }: Target, count: number): Promise<Socket[]> {
  const opened: Socket[] = []
  while (opened.length < count) {
    const group = Array.from({ length: Math.min(OPENED_AT_ONCE, count - opened.length) }, () =>
      // The API may reset a connection while others are being opened.
      connect({ port, host: '127.0.0.1' }).on('error', () => undefined),
    )
    await Promise.all(group.map((socket) => once(socket, 'connect')))
    opened.push(...group)
  }
  // Otherwise the responses would not be read.
  for (const socket of opened) socket.resume()
  sockets.push(...opened)
  return opened
}
