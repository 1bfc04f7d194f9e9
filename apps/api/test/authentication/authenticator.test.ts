import { generateApiKey } from '@sluice/projects'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { Authenticator } from '../../src/authentication/authenticator.ts'
import { Problem } from '../../src/problems.ts'
import { FakeRegistry } from '../support/fake-registry.ts'

const CLIENT = { ip: '192.0.2.1' }

let registry: FakeRegistry
let nowMs: number
let authenticator: Authenticator

beforeEach(() => {
  registry = new FakeRegistry()
  registry.addProject()
  nowMs = Date.UTC(2026, 10, 20)
  authenticator = new Authenticator(registry, { now: () => nowMs })
})

/** The project's id, or the code of the problem. */
const authenticate = (header: string | undefined): Promise<string> =>
  authenticator.authenticate(header, CLIENT).then(
    ({ id }) => id,
    (error: unknown) => {
      if (error instanceof Problem) return error.code
      throw error
    },
  )

describe('the Authorization header', () => {
  it.each(['Bearer ', 'bearer ', 'BEARER ', 'bEaReR ', 'Bearer    '])(
    'is taken with "%s"',
    async (scheme) => {
      expect(await authenticate(scheme + registry.addKey().key)).toBe('demo')
    },
  )

  it.each([
    ['absent', () => undefined],
    ['empty', () => ''],
    ['the scheme alone', () => 'Bearer'],
    ['the scheme and a blank', () => 'Bearer '],
    ['the key alone', (key: string) => key],
    ['another scheme', (key: string) => `Basic ${key}`],
    ['a token', (key: string) => `Token ${key}`],
    ['no blank', (key: string) => `Bearer${key}`],
    ['a colon', (key: string) => `Bearer: ${key}`],
    ['a tab', (key: string) => `Bearer\t${key}`],
    ['a comma after', (key: string) => `Bearer ${key},`],
    ['two keys', (key: string) => `Bearer ${key} ${key}`],
    ['two headers joined', (key: string) => `Bearer ${key}, Bearer ${key}`],
    ['quotes', (key: string) => `Bearer "${key}"`],
    ['base64', (key: string) => `Bearer ${Buffer.from(key).toString('base64')}`],
    ['lower case', (key: string) => `Bearer ${key.toLowerCase()}`],
    ['a blank before', (key: string) => ` Bearer ${key}`],
    ['a key that is cut', (key: string) => `Bearer ${key.slice(0, -1)}`],
    ['a long text', () => `Bearer ${'a'.repeat(100_000)}`],
    ['blanks without end', () => `Bearer ${' '.repeat(100_000)}`],
  ])('is refused without a look-up: %s', async (_what, header) => {
    expect(await authenticate(header(registry.addKey().key))).toBe('unauthorized')
    expect(registry.lookUps).toBe(0)
  })
})

describe('a key', () => {
  it('that nobody has is refused', async () => {
    expect(await authenticate(`Bearer ${generateApiKey()}`)).toBe('unauthorized')
  })

  it('that is revoked is refused', async () => {
    const { key } = registry.addKey({ revokedAt: '2026-11-19T00:00:00.000Z' })
    expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
  })

  it('is good until the moment it expires, cached or not', async () => {
    const { key } = registry.addKey({ expiresAt: new Date(nowMs + 1_000).toISOString() })
    nowMs += 999
    expect(await authenticate(`Bearer ${key}`)).toBe('demo')
    nowMs += 1
    expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
  })

  it('that may only read is forbidden', async () => {
    expect(await authenticate(`Bearer ${registry.addKey({ scopes: ['read'] }).key}`)).toBe('forbidden')
    expect(await authenticate(`Bearer ${registry.addKey({ scopes: [] }).key}`)).toBe('forbidden')
  })

  it('that may read and ingest is taken', async () => {
    expect(await authenticate(`Bearer ${registry.addKey({ scopes: ['read', 'ingest'] }).key}`)).toBe('demo')
  })

  it('of a project that is gone or disabled says so', async () => {
    registry.addProject({ id: 'off', enabled: false })
    expect(await authenticate(`Bearer ${registry.addKey({ projectId: 'gone' }).key}`)).toBe(
      'project_not_found',
    )
    expect(await authenticate(`Bearer ${registry.addKey({ projectId: 'off' }).key}`)).toBe(
      'project_not_found',
    )
  })

  it('that is revoked does not tell that its project is gone, nor what it lacks', async () => {
    const revokedAt = '2026-11-19T00:00:00.000Z'
    const { key } = registry.addKey({ projectId: 'gone', scopes: [], revokedAt })
    expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
  })

  it('is refused in the same words whatever is wrong with it', async () => {
    const headers = [
      undefined,
      'Bearer x',
      `Bearer ${generateApiKey()}`,
      `Bearer ${registry.addKey({ revokedAt: '2026-11-19T00:00:00.000Z' }).key}`,
      `Bearer ${registry.addKey({ expiresAt: '2026-11-19T00:00:00.000Z' }).key}`,
    ]
    const answers = await Promise.all(
      headers.map((header) => authenticator.authenticate(header, CLIENT).catch((error: unknown) => error)),
    )
    const told = answers.map((error) => {
      expect(error).toBeInstanceOf(Problem)
      const { code, message, headers: sent, errors } = error as Problem
      return JSON.stringify({ code, message, sent, errors })
    })
    expect(new Set(told).size).toBe(1)
    expect(told[0]).toContain('"www-authenticate":"Bearer"')
  })
})

describe('the cache', () => {
  it('answers for a key, known or not, without a look-up', async () => {
    const { key } = registry.addKey()
    const unknown = generateApiKey()
    for (let i = 0; i < 5; i += 1) {
      expect(await authenticate(`Bearer ${key}`)).toBe('demo')
      expect(await authenticate(`Bearer ${unknown}`)).toBe('unauthorized')
    }
    expect(registry.lookUps).toBe(2)
  })

  it('looks a cold key up once for those who ask at the same time', async () => {
    const { key } = registry.addKey()
    const answers = await Promise.all(Array.from({ length: 50 }, () => authenticate(`Bearer ${key}`)))
    expect(new Set(answers)).toEqual(new Set(['demo']))
    expect(registry.lookUps).toBe(1)
  })

  it('lets go of a key that changed', async () => {
    const { key, keyHash, record } = registry.addKey()
    await authenticate(`Bearer ${key}`)
    registry.keys.set(keyHash, { ...record, revokedAt: '2026-11-20T00:00:00.000Z' })
    authenticator.invalidate(keyHash)
    expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
  })

  it('lets go of the unknown when it becomes known', async () => {
    const { key, keyHash, record } = registry.addKey()
    registry.keys.delete(keyHash)
    expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
    registry.keys.set(keyHash, record)
    authenticator.invalidate(keyHash)
    expect(await authenticate(`Bearer ${key}`)).toBe('demo')
  })

  it('lets go of the keys of a project that changed', async () => {
    const { key } = registry.addKey()
    await authenticate(`Bearer ${key}`)
    registry.addProject({ enabled: false })
    authenticator.invalidate('demo')
    expect(await authenticate(`Bearer ${key}`)).toBe('project_not_found')
  })

  it('trusts nothing for five seconds, when the news of a change is lost', async () => {
    const { key, keyHash, record } = registry.addKey()
    const start = performance.now()
    await authenticate(`Bearer ${key}`)
    registry.keys.set(keyHash, { ...record, revokedAt: '2026-11-20T00:00:00.000Z' })
    expect(await authenticate(`Bearer ${key}`)).toBe('demo')
    vi.spyOn(performance, 'now').mockReturnValue(start + 4_900)
    expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
  })

  it.each([
    ['of that key', (keyHash: string) => keyHash],
    ['of another key', () => 'f'.repeat(64)],
    ['of a project', () => 'other'],
  ])('does not refuse a good key for a change %s during its look-up', async (_what, change) => {
    const { key, keyHash } = registry.addKey()
    const gate = Promise.withResolvers<void>()
    registry.beforeAnswer = () => gate.promise
    const answer = authenticate(`Bearer ${key}`)
    await new Promise((resolve) => setImmediate(resolve))
    authenticator.invalidate(change(keyHash))
    gate.resolve()
    expect(await answer).toBe('demo')
  })

  it('does not keep what a look-up read before the change', async () => {
    const { key, keyHash, record } = registry.addKey()
    const gate = Promise.withResolvers<void>()
    registry.beforeAnswer = () => gate.promise
    const answer = authenticate(`Bearer ${key}`)
    await new Promise((resolve) => setImmediate(resolve))
    registry.keys.set(keyHash, { ...record, revokedAt: '2026-11-20T00:00:00.000Z' })
    authenticator.invalidate(keyHash)
    gate.resolve()
    await answer
    expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
  })
})

describe('a registry that cannot be asked', () => {
  beforeEach(() => {
    registry.beforeAnswer = () => Promise.reject(new Error('connect ECONNREFUSED 10.1.2.3:6379'))
  })

  it('makes the key neither good nor bad, and says when to try again', async () => {
    const { key } = registry.addKey()
    const error: unknown = await authenticator
      .authenticate(`Bearer ${key}`, CLIENT)
      .catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'queue_unavailable', headers: { 'retry-after': '1' } })
    expect((error as Problem).message).not.toContain('10.1.2.3')
  })

  it('is asked again by the next request', async () => {
    const { key } = registry.addKey()
    expect(await authenticate(`Bearer ${key}`)).toBe('queue_unavailable')
    registry.beforeAnswer = () => Promise.resolve()
    expect(await authenticate(`Bearer ${key}`)).toBe('demo')
  })

  it('does not matter for a key that is cached', async () => {
    registry.beforeAnswer = () => Promise.resolve()
    const { key } = registry.addKey()
    await authenticate(`Bearer ${key}`)
    registry.beforeAnswer = () => Promise.reject(new Error('down'))
    expect(await authenticate(`Bearer ${key}`)).toBe('demo')
  })
})
