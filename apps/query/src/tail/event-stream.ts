import { ignoreErrors } from '@sluice/runtime'
import type { FastifyReply } from 'fastify'
import { once } from 'node:events'
import type { Sink } from './viewer.ts'

/** Begins a response of server-sent events. */
export function openStream(reply: FastifyReply): Sink {
  const { raw } = reply
  const headers = Object.entries(reply.getHeaders()).filter((header) => header[1] !== undefined)
  reply.hijack()
  raw.writeHead(200, {
    ...Object.fromEntries(headers),
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    // nginx would keep events back.
    'x-accel-buffering': 'no',
  } as Record<string, string>)
  raw.flushHeaders()
  ignoreErrors(raw)
  const closed = once(raw, 'close')
  let draining: Promise<unknown> | undefined
  return {
    // It may have been closed during a query.
    write: (text) => void (raw.writableEnded || raw.write(text)),
    get bufferedBytes() {
      return raw.writableLength
    },
    drained: async () => {
      if (!raw.writableNeedDrain || raw.destroyed) return
      // One that is not read is asked again and again.
      draining ??= Promise.race([once(raw, 'drain'), closed]).finally(() => (draining = undefined))
      await draining
    },
    close: () => {
      raw.end()
      // One that reads nothing would never end.
      if (raw.writableLength > 0) raw.destroy()
    },
  }
}
