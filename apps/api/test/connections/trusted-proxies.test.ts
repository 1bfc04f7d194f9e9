import { createLogger, SettingsError } from '@sluice/runtime'
import { describe, expect, it, vi } from 'vitest'
import { readApiConfig } from '../../src/config.ts'
import { buildTestApi } from '../support/test-api.ts'

const trusted = (proxies: string): string[] | false => readApiConfig({ TRUST_PROXY: proxies }).trustedProxies

describe('TRUST_PROXY', () => {
  it.each([
    ['', false],
    ['false', false],
    ['10.0.0.1', ['10.0.0.1']],
    ['10.0.0.0/8, fd00::/8,loopback', ['10.0.0.0/8', 'fd00::/8', 'loopback']],
    ['uniquelocal,linklocal,::1', ['uniquelocal', 'linklocal', '::1']],
  ])('may be "%s"', (value, proxies) => {
    expect(trusted(value)).toEqual(proxies)
  })

  const invalid = ['1', '10.0.0.01/24', '10.0.0.0/255.0.0.0', '10.0.0', '::1/129', '0.0.0.0/0', '::/0', ',']
  it.each(invalid)('may not be %s', (value) => {
    expect(() => trusted(value)).toThrow(SettingsError)
    expect(() => trusted(`10.0.0.1,${value}`)).toThrow('TRUST_PROXY')
  })
})

/** The addresses that the API assigns to requests with these X-Forwarded-For headers, and its warnings. */
async function forward(
  proxies: string[] | false,
  remoteAddress: string,
  ...forwarded: (string | undefined)[]
) {
  const logger = createLogger('test', 'silent')
  const warn = vi.spyOn(logger, 'warn')
  const api = buildTestApi({ trustedProxies: proxies, logger })
  const addresses: string[] = []
  api.app.addHook('onRequest', async ({ ip }) => void addresses.push(ip))
  for (const address of forwarded) {
    const headers = address === undefined ? {} : { 'x-forwarded-for': address }
    await api.post('{}', { headers, remoteAddress })
  }
  await api.close()
  return { addresses, warnings: warn.mock.calls }
}

describe('the address of a request', () => {
  const one = ['10.0.0.1']
  it.each<[what: string, proxies: string[] | false, forwarded: string, remote: string, ip: string]>([
    ['the address of the connection if no proxy is trusted', false, '203.0.113.7', '10.0.0.1', '10.0.0.1'],
    ['the address of the connection if it is not trusted', one, '203.0.113.7', '10.0.0.2', '10.0.0.2'],
    ['the address that the proxy reports over IPv6', one, '203.0.113.7', '::ffff:10.0.0.1', '203.0.113.7'],
    ['not the address that the client claims', one, '1.1.1.1, 203.0.113.7', '10.0.0.1', '203.0.113.7'],
  ])('is %s', async (_what, proxies, forwarded, remote, ip) => {
    expect((await forward(proxies, remote, forwarded)).addresses).toEqual([ip])
  })
})

describe('a request that a proxy has forwarded', () => {
  it('causes one warning with the address of the proxy if no proxy is trusted', async () => {
    const { warnings } = await forward(false, '10.0.0.1', undefined, '203.0.113.7', '203.0.113.8', '')
    expect(warnings).toEqual([[{ address: '10.0.0.1' }, expect.stringContaining('TRUST_PROXY')]])
  })

  it('causes no warning if proxies are trusted, or if there is no proxy', async () => {
    expect((await forward(['10.0.0.2'], '10.0.0.1', '203.0.113.7')).warnings).toEqual([])
    expect((await forward(false, '10.0.0.1', undefined)).warnings).toEqual([])
  })
})
