import { SettingsError } from '@sluice/runtime'
import { isIP } from 'node:net'

/** Names for private ranges that Fastify knows. */
const NAMED_RANGES: ReadonlySet<string> = new Set(['loopback', 'linklocal', 'uniquelocal'])

/**
 * The proxies whose X-Forwarded-For is believed: addresses, CIDR ranges and named ranges, parted by commas. False where
 * nobody is: then a request's address is that of its connection.
 *
 * A number of hops is not taken: it would believe whoever connects directly. Nor is "everybody".
 *
 * @throws SettingsError
 */
export function parseTrustedProxies(text: string | undefined): string[] | false {
  if (text === undefined || text === 'false') return false
  const proxies = text.split(',').map((proxy) => proxy.trim())
  if (proxies.every((proxy) => NAMED_RANGES.has(proxy) || isRange(proxy))) return proxies
  throw new SettingsError(
    'invalid settings: TRUST_PROXY must be addresses, CIDR ranges, loopback, linklocal or uniquelocal, parted by commas',
  )
}

function isRange(text: string): boolean {
  const [, address = '', bits = ''] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const version = isIP(address)
  // A range of all addresses would let everybody say who they are.
  return version !== 0 && (bits === '' || (Number(bits) >= 1 && Number(bits) <= (version === 4 ? 32 : 128)))
}
