import { type Logger, SettingsError, stringSetting } from '@sluice/runtime'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { isIP } from 'node:net'

export const proxySettings = {
  TRUST_PROXY: stringSetting(
    {},
    'Proxies whose X-Forwarded-For header is trusted: a comma-separated list of addresses, CIDR ranges, ' +
      '`loopback`, `linklocal` and `uniquelocal`.',
  ),
} as const

const NAMED_RANGES: ReadonlySet<string> = new Set(['loopback', 'linklocal', 'uniquelocal'])

/**
 * The proxies of TRUST_PROXY. False if no proxy is trusted: then a request's address is the address of its connection. A number of hops is
 * not accepted, because every client that connects directly would be trusted. Neither is a range of all addresses.
 *
 * @throws SettingsError
 */
export function parseTrustedProxies(text: string | undefined): string[] | false {
  if (text === undefined || text === 'false') return false
  const proxies = text.split(',').map((proxy) => proxy.trim())
  if (proxies.every((proxy) => NAMED_RANGES.has(proxy) || isAddress(proxy) || isRange(proxy))) return proxies
  throw new SettingsError(
    'invalid settings: TRUST_PROXY must be a comma-separated list of addresses, CIDR ranges, loopback, linklocal and uniquelocal',
  )
}

/**
 * Warns when a request was forwarded and no proxy is trusted. All clients behind the proxy then count as one address, and one of
 * them can use up what an address may do. Once per process, since every request may be forwarded, and any client may send the header.
 */
export function forwardingCheck(
  proxies: string[] | false,
  logger: Logger,
): (request: FastifyRequest) => void {
  let isDone = proxies !== false
  return ({ headers, ip }) => {
    if (isDone || headers['x-forwarded-for'] === undefined) return
    isDone = true
    logger.warn(
      { address: ip },
      'x-forwarded-for arrived and TRUST_PROXY is not set, all clients of a proxy count as one address',
    )
  }
}

/** ipaddr.js accepts more than addresses: `1` would be 0.0.0.1, and a leading zero may mean octal. */
function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%')
}

function isRange(text: string): boolean {
  if (!isAddress(text.split('/', 1)[0] ?? '') || !ipaddr.isValidCIDR(text)) return false
  const [, prefixBits] = ipaddr.parseCIDR(text)
  // With a range of all addresses, every client could choose its address.
  return prefixBits > 0
}
