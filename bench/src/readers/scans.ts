import { setTimeout as delay } from 'node:timers/promises'
import type { ReadTarget } from './viewers.ts'

/** They read a day of messages or metadata, and find nothing that would end them early. */
const searches = [
  'logs?query=zanzibarquux',
  'values?field=metadata.host&limit=100',
  'histogram?by=metadata.host&query=durationMs:>9000',
]
const REFUSED_PAUSE_MS = 50

/** Clients that search the last day in a loop, without a pause. @returns stops them, and says how many searches they had, and what one took */
export function scanAllDay({ queryUrl, readKey }: ReadTarget, clients: number) {
  const stopping = new AbortController()
  const timesMs: number[] = []
  const run = async (client: number): Promise<void> => {
    for (let number = client; !stopping.signal.aborted; number += 1) {
      const startedMs = performance.now()
      try {
        const url = `${queryUrl}/v1/query/${searches[number % searches.length]}&from=-1d`
        const headers = { authorization: `Bearer ${readKey}` }
        const response = await fetch(url, { headers, signal: stopping.signal })
        await response.arrayBuffer()
        if (response.ok) timesMs.push(performance.now() - startedMs)
        else await delay(REFUSED_PAUSE_MS)
      } catch (error) {
        if (!stopping.signal.aborted) throw error
      }
    }
  }
  const running = Promise.all(Array.from({ length: clients }, (_, client) => run(client)))
  return {
    async stop(): Promise<{ searches: number; p50Ms: number | undefined }> {
      stopping.abort()
      await running
      const sorted = timesMs.toSorted((a, b) => a - b)
      return { searches: sorted.length, p50Ms: sorted[Math.floor(sorted.length / 2)] }
    },
  }
}
