import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { startSluice } from '../systems.ts'
import type { Supervisor } from '@sluice/local'

/** Where a client sends its entries. */
export interface Target {
  readonly url: string
  readonly apiKey: string
}

const apiKey = 'slk_bench'

/** A server that never responds. */
export async function startSilent(): Promise<Target> {
  return { url: await listen(createServer((socket) => socket.on('error', () => undefined).resume())), apiKey }
}

/** An API that accepts everything and stores nothing. */
export async function startAnswering(): Promise<Target> {
  const server = createHttpServer((request, response) => void accept(request, response))
  return { url: await listen(server), apiKey }
}

async function accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { logs } = JSON.parse(decode(await buffer(request), request.headers['content-encoding'])) as {
    readonly logs: readonly unknown[]
  }
  response
    .writeHead(202, { 'content-type': 'application/json' })
    .end(JSON.stringify({ success: true, accepted: logs.length, rejected: 0 }))
}

function decode(bytes: Buffer, encoding: string | undefined): string {
  if (encoding === 'zstd') return zstdDecompressSync(bytes).toString()
  return (encoding === 'gzip' ? gunzipSync(bytes) : bytes).toString()
}

export async function startRealSluice(supervisor: Supervisor): Promise<Target> {
  const system = await startSluice({ supervisor })
  return { url: system.url, apiKey: system.apiKey }
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
