import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { startSluice } from '../systems.ts'
import type { Supervisor } from '@sluice/local'

/** Where a client sends its entries. */
export interface Target {
  readonly url: string
  readonly apiKey: string
}

const apiKey = 'slk_bench'

/** A port at which nothing listens. */
export async function startClosedPort(): Promise<Target> {
  const server = createServer()
  const url = await listen(server)
  server.close()
  await once(server, 'close')
  return { url, apiKey }
}

/** A server that never answers. */
export async function startSilent(): Promise<Target> {
  return { url: await listen(createServer((socket) => socket.on('error', () => undefined).resume())), apiKey }
}

/** A server that answers every request at once, and does nothing else. All requests must have 100 entries. */
export async function startAnswering(): Promise<Target> {
  const body = '{"success":true,"accepted":100,"rejected":0}'
  const server = createHttpServer((request, response) => {
    request
      .resume()
      .on('end', () => response.writeHead(202, { 'content-type': 'application/json' }).end(body))
  })
  return { url: await listen(server), apiKey }
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
