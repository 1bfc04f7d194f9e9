import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'

type Callback = Parameters<LookupFunction>[2]
type Answer = Parameters<Callback>

/**
 * Looks hosts up like `dns.lookup`, but never a host that is being looked up already: callers then share the answer.
 *
 * A lookup takes one of the four threads of Node's pool, for half a minute if the name server is silent. An export gives up before that,
 * and the next one looks the host up as well. Without this function they would use all threads, and the API decodes large bodies in them.
 */
export function sharedLookup(base: LookupFunction = lookup): LookupFunction {
  /** The callers that wait, by what they look up. */
  const waiting = new Map<string, Callback[]>()
  return (hostname, options, callback) => {
    const key = `${hostname} ${options.all === true} ${options.family ?? 0}`
    const others = waiting.get(key)
    if (others !== undefined) {
      others.push(callback)
      return
    }
    const callbacks = [callback]
    waiting.set(key, callbacks)
    base(hostname, options, (...answer: Answer) => {
      waiting.delete(key)
      for (const each of callbacks) each(...answer)
    })
  }
}
