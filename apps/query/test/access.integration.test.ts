import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { readExplorer } from '../src/explorer.ts'
import { foreignHeaders, problemOf, useQueryTests } from './support/test-query.ts'

const folder = mkdtempSync(join(tmpdir(), 'explorer-'))
writeFileSync(join(folder, 'index.html'), '<!doctype html><title>explorer</title>')
writeFileSync(join(folder, 'app-1A2B3C4D.js'), 'export {}')
const explorer = readExplorer(folder)
rmSync(folder, { recursive: true })

const { store, open } = await useQueryTests()
const api = await open({ explorer }, afterAll)

const request = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${api.url}${path}`, { redirect: 'manual', ...init })

const signIn = (key: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  request('/v1/query/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ key }),
  })

const cookieOf = (response: Response): string => response.headers.get('set-cookie')?.split(';', 1)[0] ?? ''

describe('a key', () => {
  it('needs the scope read, and a project that exists', async () => {
    const ingest = api.addProject(['ingest'])
    expect(await problemOf(await api.get(ingest.key, 'logs'))).toBe('403 forbidden')
    expect(await problemOf(await request('/v1/query/logs'))).toBe('401 unauthorized')
    expect(await problemOf(await api.get('slk_wrong', 'logs'))).toBe('401 unauthorized')
    const gone = api.registry.addKey({ projectId: 'gone', scopes: ['read'] })
    expect(await problemOf(await api.get(gone.key, 'logs'))).toBe('404 project_not_found')
    expect(await problemOf(await signIn(ingest.key))).toBe('403 forbidden')
  })
})

it('a key without the scope read, but with admin, has a session that reads no entries', async () => {
  const { projectId, key } = api.addProject(['admin'])
  const response = await signIn(key)
  expect(await response.json()).toEqual({ project_id: projectId, scopes: ['admin'] })
  const headers = { cookie: cookieOf(response) }
  expect(await problemOf(await request('/v1/query/logs', { headers }))).toBe('403 forbidden')
  expect(await problemOf(await api.get(key, 'tail'))).toBe('403 forbidden')
})

describe('a session', () => {
  it('reads what its key reads, until it is ended', async () => {
    const { projectId, key } = api.addProject()
    await store([{ projectId }])
    const response = await signIn(key)
    expect(await response.json()).toEqual({ project_id: projectId, scopes: ['read'] })
    expect(response.headers.get('set-cookie')).toMatch(
      /^sluice_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
    )
    const headers = { cookie: `a=b; ${cookieOf(response)}` }
    const logs = (await (await request('/v1/query/logs', { headers })).json()) as { entries: unknown[] }
    expect(logs.entries).toHaveLength(1)
    const session = await request('/v1/query/session', { headers })
    expect(await session.json()).toEqual({ project_id: projectId, scopes: ['read'] })
    expect((await request('/v1/query/session', { method: 'DELETE', headers })).status).toBe(204)
    expect(await problemOf(await request('/v1/query/logs', { headers }))).toBe('401 unauthorized')
    // Redis never had the token or the key.
    expect(JSON.stringify([...api.redis.values])).not.toContain(key)
  })

  it('ends with its key', async () => {
    const { key, keyHash } = api.addProject()
    const headers = { cookie: cookieOf(await signIn(key)) }
    const record = api.registry.keysByHash.get(keyHash)
    if (record !== undefined)
      api.registry.keysByHash.set(keyHash, { ...record, revokedAt: new Date().toISOString() })
    await expect.poll(async () => (await request('/v1/query/session', { headers })).status).toBe(401)
  })

  it.each(foreignHeaders)('is not begun or ended by another site: %j', async (headers) => {
    const { key } = api.addProject()
    expect(await problemOf(await signIn(key, headers))).toBe('403 cross_origin')
    const ending = await request('/v1/query/session', { method: 'DELETE', headers })
    expect(await problemOf(ending)).toBe('403 cross_origin')
  })

  it.each([undefined, 1, 'slk_x', { a: 1 }])('is not begun with the key %j', async (key) => {
    expect(await problemOf(await signIn(key))).toMatch(/^(400 invalid_body|401 unauthorized)$/)
  })

  it('is begun by a link once', async () => {
    const { projectId, keyHash } = api.addProject()
    const path = `/open?token=${await api.sessions.createLink(keyHash)}`
    const responses = await Promise.all([request(path), request(path), request(path)])
    expect(responses.map(({ status, headers }) => [status, headers.get('location')])).toEqual(
      Array.from({ length: 3 }, () => [303, '/']),
    )
    const cookies = responses.map(cookieOf).filter((cookie) => cookie !== '')
    expect(cookies).toHaveLength(1)
    const session = await request('/v1/query/session', { headers: { cookie: cookies.join('') } })
    expect(await session.json()).toEqual({ project_id: projectId, scopes: ['read'] })
  })
})

describe('the explorer', () => {
  it('has a page that is not stored and files that are, with a strict policy', async () => {
    for (const path of ['/', '/pipeline', '/index.html']) {
      const response = await request(path)
      expect(await response.text()).toContain('explorer')
      expect(response.headers.get('cache-control')).toBe('no-store')
      const policy = response.headers.get('content-security-policy') ?? ''
      expect(policy).toContain("default-src 'none'")
      expect(policy).not.toContain('unsafe')
    }
    const script = await request('/app-1A2B3C4D.js')
    expect(script.headers.get('content-type')).toMatch('text/javascript')
    expect(script.headers.get('cache-control')).toMatch('immutable')
  })

  it.each(['/../package.json', '/..%2fpackage.json', '/assets/missing.js', '/v1/query/nothing', '/%00.js'])(
    'has no file %s',
    async (path) => {
      // Another client would normalise the path.
      const client = api.ask(path)
      client.read()
      await expect.poll(() => client.text).toContain('application/problem+json')
      expect(client.text).toMatch(/^HTTP\/1.1 40[04] /)
    },
  )
})

it('the OpenAPI document has every operation', async () => {
  const document = (await (await request('/v1/query/openapi.json')).json()) as { paths: object }
  expect(Object.keys(document.paths)).toContain('/v1/query/tail')
  expect(document.paths).toHaveProperty(['/v1/query/dead-letters/retry', 'post', 'requestBody'])
})
