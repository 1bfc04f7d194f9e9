import { describe, expect, test } from 'vitest'
import { type GlobalScope, isBrowser } from '../src/platform.ts'
import { SluiceClient } from '../src/index.ts'
import { systemPlatform } from '../src/platform.ts'

const importScripts = (): void => undefined

describe('is a browser', () => {
  test.each<[string, GlobalScope]>([
    ['a page', { window: { document: {} } }],
    ['a web worker', { importScripts }],
    ['a web worker with a name of a browser', { importScripts, navigator: { userAgent: 'Mozilla/5.0' } }],
  ])('%s', (_name, scope) => {
    expect(isBrowser(scope)).toBe(true)
  })
})

describe('is not a browser', () => {
  test.each<[string, GlobalScope]>([
    ['Node', {}],
    ['an older Deno, which has a window without a document', { window: {}, Deno: {} }],
    ['a worker of Deno', { importScripts, Deno: {} }],
    ['a worker of Bun', { importScripts, Bun: {} }],
    ['a worker of Cloudflare', { importScripts, navigator: { userAgent: 'Cloudflare-Workers' } }],
  ])('%s', (_name, scope) => {
    expect(isBrowser(scope)).toBe(false)
  })

  test('this process', () => {
    expect(isBrowser(globalThis)).toBe(false)
  })
})

describe('in a browser', () => {
  const platform = { ...systemPlatform(), scope: { window: { document: {} } } }

  test('an API key is rejected, and the message names the example of a proxy', () => {
    expect(() => new SluiceClient({ url: 'https://logs.example.com', apiKey: 'slk_1' }, platform)).toThrow(
      /apiKey.*browser.*examples\/browser-proxy/,
    )
  })

  test('entries go to the own backend, and their source is the client', async () => {
    const requests: { url: string; init: RequestInit }[] = []
    const client = new SluiceClient(
      {
        url: 'https://shop.example.com/telemetry',
        compression: 'none',
        fetch: async (url, init) => {
          requests.push({ url, init })
          return Response.json({ success: true, accepted: 1, rejected: 0 }, { status: 202 })
        },
      },
      platform,
    )
    client.info('clicked')
    expect(await client.close()).toMatchObject({ accepted: 1 })
    const [{ url, init } = { url: '', init: {} }] = requests
    expect(url).toBe('https://shop.example.com/telemetry/v1/logs')
    expect(init.headers).not.toHaveProperty('authorization')
    expect(new TextDecoder().decode(init.body as Uint8Array)).toContain('"source":"client"')
  })
})
