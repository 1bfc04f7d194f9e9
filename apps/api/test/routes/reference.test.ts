import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { problemCode } from '../support/problem.ts'
import { freshTestApi, rebuild } from '../support/shared-api.ts'

const api = freshTestApi()

/** The URLs that a browser loads for the page. */
async function assets(): Promise<string[]> {
  const { body } = await api.app.inject('/docs')
  return [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(
    ([, address = '']) => new URL(address, 'http://sluice/docs').href,
  )
}

describe('/docs', () => {
  it('needs no key, and allows only scripts that are files of this server', async () => {
    const { headers, body } = await api.app.inject('/docs')
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    const policy = String(headers['content-security-policy']).split('; ')
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("script-src 'self'")
    expect(policy.join()).not.toMatch(/script-src[^,]*unsafe|https?:|\*/)
    expect(body).not.toMatch(/<script(?! src=)|<style|\son\w+=|javascript:/i)
  })

  it('loads all its files from this server', async () => {
    const addresses = await assets()
    expect(addresses).toHaveLength(3)
    for (const address of addresses) {
      expect(address).toMatch(/^http:\/\/sluice\/docs\//)
      const { statusCode, headers, rawPayload } = await api.app.inject(address)
      expect(statusCode).toBe(200)
      expect(headers['content-type']).toMatch(address.endsWith('.css') ? /^text\/css/ : /^text\/javascript/)
      expect(headers['x-content-type-options']).toBe('nosniff')
      const isCompressed = headers['content-encoding'] === 'gzip'
      expect(isCompressed).toBe(!address.endsWith('start.js'))
      expect(String(isCompressed ? gunzipSync(rawPayload) : rawPayload)).toMatch(/swagger/i)
    }
  })

  it('reads each file once, whatever the number of requests', async () => {
    const read = vi.spyOn(files, 'readFile')
    syncBuiltinESMExports()
    onTestFinished(() => {
      read.mockRestore()
      syncBuiltinESMExports()
    })
    const url = '/docs/swagger-ui.css'
    await Promise.all([api.app.inject(url), api.app.inject(url)])
    expect((await api.app.inject(url)).statusCode).toBe(200)
    expect(read).toHaveBeenCalledOnce()
  })

  it('is not served if it is disabled, in contrast to the document', async () => {
    const addresses = ['/docs', ...(await assets())]
    await rebuild(api, { docsEnabled: false })
    for (const url of addresses) expect(problemCode(await api.app.inject(url))).toBe('not_found')
    expect((await api.app.inject('/openapi.json')).statusCode).toBe(200)
  })

  it.each(['/docs/', '/docs/package.json', '/docs/%2e%2e%2fpackage.json'])(
    'has no other paths below it: %s',
    async (url) => expect(problemCode(await api.app.inject(url))).toBe('not_found'),
  )
})

it.each(['/openapi.json', '/docs'])(
  '%s has no CORS headers, returns the id of its request, and rejects other methods',
  async (url) => {
    const sent = { origin: 'https://example.com', 'x-request-id': 'r1' }
    const { headers } = await api.app.inject({ url, headers: sent })
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
    expect(headers['x-request-id']).toBe('r1')
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'] as const)
      expect((await api.app.inject({ method, url })).statusCode).toBe(404)
  },
)
