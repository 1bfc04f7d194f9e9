import { createLogger, SettingsError } from '@sluice/runtime'
import { describe, expect, it, vi } from 'vitest'
import { readApiConfig } from '../../src/config.ts'
import { buildTestApi } from '../support/test-api.ts'

const trusted = (text: string): string[] | false => readApiConfig({ TRUST_PROXY: text }).trustedProxies

/** The address that the API assigns to a request. */
const addressOf = async (
  proxies: string[] | false,
  forwarded: string | undefined,
  remoteAddress: string,
): Promise<string> => {
  const api = buildTestApi({ trustedProxies: proxies })
  let address = ''
  api.app.addHook('onRequest', (request, _reply, done) => {
    address = request.ip
    done()
  })
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  await api.post('{}', { headers, remoteAddress })
  await api.close()
  return address
}

describe('TRUST_PROXY', () => {
  it('trusts no proxy by default', () => {
    expect(readApiConfig({}).trustedProxies).toBe(false)
    expect(trusted('')).toBe(false)
    expect(trusted('false')).toBe(false)
  })

  it.each([
    ['10.0.0.1', ['10.0.0.1']],
    ['10.0.0.0/8, fd00::/8,loopback', ['10.0.0.0/8', 'fd00::/8', 'loopback']],
    ['uniquelocal,linklocal,::1', ['uniquelocal', 'linklocal', '::1']],
    ['192.168.1.1/32,::1/128', ['192.168.1.1/32', '::1/128']],
  ])('accepts %s', (text, proxies) => {
    expect(trusted(text)).toEqual(proxies)
  })

  it.each([
    'true',
    '1',
    '10.0.0.01/24',
    '10.0.0.0/255.0.0.0',
    '10.0.0',
    '10.0.0.0/33',
    '::1/129',
    '0.0.0.0/0',
    '::/0',
    ',',
  ])('rejects %s', (text) => {
    expect(() => trusted(text)).toThrow(SettingsError)
    expect(() => trusted(`10.0.0.1,${text}`)).toThrow('TRUST_PROXY')
  })
})

describe('the address of a request', () => {
  it.each([
    ['the address of the connection if no proxy is trusted', false, '203.0.113.7', '10.0.0.1', '10.0.0.1'],
    [
      'the address of the connection if it is not a trusted proxy',
      ['10.0.0.1'],
      '203.0.113.7',
      '10.0.0.2',
      '10.0.0.2',
    ],
    ['the address that the proxy reports', ['10.0.0.1'], '203.0.113.7', '10.0.0.1', '203.0.113.7'],
    [
      'the address that the proxy reports over IPv6',
      ['10.0.0.1'],
      '203.0.113.7',
      '::ffff:10.0.0.1',
      '203.0.113.7',
    ],
    [
      'the address that the outermost proxy reports',
      ['10.0.0.0/8'],
      '203.0.113.7, 10.0.0.9',
      '10.0.0.1',
      '203.0.113.7',
    ],
    [
      'not the address that the client claims',
      ['10.0.0.1'],
      '1.1.1.1, 203.0.113.7',
      '10.0.0.1',
      '203.0.113.7',
    ],
    ['the address of the proxy if it reports none', ['10.0.0.1'], undefined, '10.0.0.1', '10.0.0.1'],
  ] as const)('is %s', async (_what, proxies, forwarded, remote, expected) => {
    expect(await addressOf(proxies === false ? false : [...proxies], forwarded, remote)).toBe(expected)
  })
})

/** The warnings after requests with and without X-Forwarded-For. */
const warningsOf = async (
  proxies: string[] | false,
  forwarded: (string | undefined)[],
): Promise<unknown[]> => {
  const logger = createLogger('test', 'silent')
  const warn = vi.spyOn(logger, 'warn')
  const api = buildTestApi({ trustedProxies: proxies, logger })
  for (const address of forwarded) {
    const headers = address === undefined ? {} : { 'x-forwarded-for': address }
    await api.post('{}', { headers, remoteAddress: '10.0.0.1' })
  }
  await api.close()
  return warn.mock.calls
}

describe('a request that a proxy has forwarded', () => {
  it('causes one warning with the address of the proxy if no proxy is trusted', async () => {
    const calls = await warningsOf(false, [undefined, '203.0.113.7', '203.0.113.8', ''])
    expect(calls).toEqual([[{ address: '10.0.0.1' }, expect.stringContaining('TRUST_PROXY')]])
  })

  it('causes no warning if proxies are trusted, or if there is no proxy', async () => {
    expect(await warningsOf(['10.0.0.2'], ['203.0.113.7'])).toEqual([])
    expect(await warningsOf(false, [undefined])).toEqual([])
  })
})
