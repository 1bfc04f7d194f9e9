import { setTimeout as delay } from 'node:timers/promises'
import { DurationHistogram } from '../measure/duration-histogram.ts'
import { openViewers, type ReadTarget } from './viewers.ts'

const PROBE_INTERVAL_MS = 50
/** A tail that needs longer has lost the entry. */
const ARRIVAL_DEADLINE_MS = 20_000
const SERVICE = 'probe'

interface ProbeTarget extends ReadTarget {
  readonly url: string
  readonly apiKey: string
}

/**
 * Measures the time from the 202 of an entry until a viewer of the tail has it: sends single entries, and follows those of their service.
 *
 * @returns milliseconds
 * @throws if an entry does not arrive
 */
export async function probeTail(
  target: ProbeTarget,
  durationMs: number,
): Promise<{ p50Ms: number; p99Ms: number; maxMs: number }> {
  const times = new DurationHistogram()
  const ackedAtMs = new Map<string, number>()
  const arrivedAtMs = new Map<string, number>()
  const settle = (message: string): void => {
    const [acked, arrived] = [ackedAtMs.get(message), arrivedAtMs.get(message)]
    if (acked !== undefined && arrived !== undefined) times.record(Math.max(0, arrived - acked))
  }
  let rest = ''
  const close = await openViewers(target, {
    count: 1,
    query: `service:${SERVICE}`,
    onText: (text) => {
      const events = (rest + text).split('\n\n')
      rest = events.pop() ?? ''
      for (const [, message = ''] of events.join('\n').matchAll(/"message":"(\d+)"/g)) {
        arrivedAtMs.set(message, performance.now())
        settle(message)
      }
    },
  })
  const post = async (message: string): Promise<void> => {
    const response = await fetch(target.url, {
      method: 'POST',
      headers: { authorization: `Bearer ${target.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ level: 'debug', service: SERVICE, message }),
    })
    if (response.status !== 202) return
    ackedAtMs.set(message, performance.now())
    await response.body?.cancel()
    settle(message)
  }
  const posts: Promise<void>[] = []
  for (const endMs = performance.now() + durationMs; performance.now() < endMs;) {
    posts.push(post(String(posts.length)))
    await delay(PROBE_INTERVAL_MS)
  }
  await Promise.all(posts)
  const isMissing = (): boolean => [...ackedAtMs.keys()].some((message) => !arrivedAtMs.has(message))
  for (const endMs = performance.now() + ARRIVAL_DEADLINE_MS; isMissing();) {
    if (performance.now() > endMs) throw new Error('an entry is not in the tail')
    await delay(PROBE_INTERVAL_MS)
  }
  close()
  const [p50Ms, p99Ms, maxMs] = [50, 99, 100].map((percentile) => times.percentileMs(percentile))
  return { p50Ms: p50Ms ?? 0, p99Ms: p99Ms ?? 0, maxMs: maxMs ?? 0 }
}
