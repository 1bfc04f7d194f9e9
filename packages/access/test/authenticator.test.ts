import { generateApiKey } from '@sluice/projects'
import { beforeEach, describe, expect, it } from 'vitest'
import { Authenticator } from '../src/authenticator.ts'
import { credentialLimits } from '../src/authenticator.ts'
import { HttpProblem as Problem } from '../src/problems.ts'
import { authenticatorOptions, FakeRegistry } from './fake-registry.ts'

const CLIENT = { ip: '192.0.2.1', socket: {} }

const revokedAt = '2026-11-19T00:00:00.000Z'

let registry: FakeRegistry
let wallMs: number
let monotonicMs: number
let authenticator: Authenticator

beforeEach(() => {
  registry = new FakeRegistry()
  registry.addProject()
  wallMs = Date.UTC(2026, 10, 20)
  monotonicMs = 0
  authenticator = new Authenticator(registry, {
    ...authenticatorOptions,
    wallMs: () => wallMs,
    monotonicMs: () => monotonicMs,
  })
})

/** The id of the project, or the code of the problem. */
const authenticate = (header: string | undefined): Promise<string> =>
  authenticator.authenticate(header, CLIENT).then(
    ({ id }) => id,
    (error: unknown) => {
      if (error instanceof Problem) return error.code
      throw error
    },
  )

it.each(['Bearer ', 'bEaReR    '])('the header Authorization may have the scheme "%s"', async (scheme) => {
  expect(await authenticate(scheme + registry.addKey().key)).toBe('demo')
})

it.each([
  ['absent', () => undefined],
  ['only the scheme', () => 'Bearer'],
  ['only the key', (key: string) => key],
  ['another scheme', (key: string) => `Basic ${key}`],
  ['a tab', (key: string) => `Bearer\t${key}`],
  ['two keys', (key: string) => `Bearer ${key} ${key}`],
  ['a truncated key', (key: string) => `Bearer ${key.slice(0, -1)}`],
  ['a long run of spaces', () => `Bearer ${' '.repeat(100_000)}`],
])('the header Authorization is rejected without a lookup: %s', async (_what, header) => {
  expect(await authenticate(header(registry.addKey().key))).toBe('unauthorized')
  expect(registry.lookups).toBe(0)
})

describe('a key', () => {
  it('is valid until it expires, also while it is cached', async () => {
    const { key } = registry.addKey({ expiresAt: new Date(wallMs + 1_000).toISOString() })
    wallMs += 999
    expect(await authenticate(`Bearer ${key}`)).toBe('demo')
    wallMs += 1
    expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
  })

  it.each([
    ['is lost if Redis has no record of it any more', {}, 1],
    ['was revoked, so it is not lost', { revokedAt }, 0],
    ['has expired, so it is not lost', { expiresAt: '2026-11-19T00:00:00.000Z' }, 0],
  ])('that was known %s', async (_what, fields, keysLost) => {
    const { key, keyHash } = registry.addKey(fields)
    await authenticate(`Bearer ${key}`)
    registry.keysByHash.delete(keyHash)
    monotonicMs += credentialLimits.trustMs
    for (let i = 0; i < 2; i += 1) expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
    await authenticate(`Bearer ${generateApiKey()}`)
    expect(authenticator.keysLost).toBe(keysLost)
  })

  it('of a project that was deleted, and imported without the key, is rejected', async () => {
    const deletedAt = '2026-11-19T00:00:00.000Z'
    expect(await authenticate(`Bearer ${registry.addKey({ deletedAt }).key}`)).toBe('unauthorized')
    expect(await authenticate(`Bearer ${registry.addKey({ projectId: 'deleted', deletedAt }).key}`)).toBe(
      'project_not_found',
    )
  })

  it('is rejected with the same problem for every reason', async () => {
    const headers = [
      undefined,
      'Bearer x',
      `Bearer ${generateApiKey()}`,
      `Bearer ${registry.addKey({ revokedAt }).key}`,
      `Bearer ${registry.addKey({ projectId: 'deleted', scopes: [], revokedAt }).key}`,
      `Bearer ${registry.addKey({ expiresAt: '2026-11-19T00:00:00.000Z' }).key}`,
    ]
    const answers = await Promise.all(
      headers.map((header) => authenticator.authenticate(header, CLIENT).catch((error: unknown) => error)),
    )
    const rejections = answers.map((error) => {
      expect(error).toBeInstanceOf(Problem)
      const { code, message, headers: sent, errors } = error as Problem
      return JSON.stringify({ code, message, sent, errors })
    })
    expect(new Set(rejections).size).toBe(1)
    expect(rejections[0]).toContain('"www-authenticate":"Bearer"')
  })
})

describe('the cache', () => {
  it('resolves known and unknown keys without a lookup', async () => {
    const { key } = registry.addKey()
    const unknown = generateApiKey()
    for (let i = 0; i < 5; i += 1) {
      expect(await authenticate(`Bearer ${key}`)).toBe('demo')
      expect(await authenticate(`Bearer ${unknown}`)).toBe('unauthorized')
    }
    expect(registry.lookups).toBe(2)
  })

  it('drops an unknown key that becomes known', async () => {
    const { key, keyHash, record } = registry.addKey()
    registry.keysByHash.delete(keyHash)
    expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
    registry.keysByHash.set(keyHash, record)
    monotonicMs += credentialLimits.trustMs
    expect(await authenticate(`Bearer ${key}`)).toBe('demo')
  })

  it('trusts no key for five seconds', async () => {
    const { key, keyHash, record } = registry.addKey()
    await authenticate(`Bearer ${key}`)
    registry.keysByHash.set(keyHash, { ...record, revokedAt })
    expect(await authenticate(`Bearer ${key}`)).toBe('demo')
    monotonicMs = 4_900
    expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
  })

  it('trusts the result of a lookup from its start', async () => {
    const { key, keyHash, record } = registry.addKey()
    registry.beforeAnswer = async () => void (monotonicMs += 2_900)
    await authenticate(`Bearer ${key}`)
    registry.keysByHash.set(keyHash, { ...record, revokedAt })
    monotonicMs += 2_000
    expect(await authenticate(`Bearer ${key}`)).toBe('unauthorized')
  })
})

it('a registry that is unavailable causes queue_unavailable with Retry-After, and reveals nothing about Redis', async () => {
  registry.beforeAnswer = () => Promise.reject(new Error('connect ECONNREFUSED 10.1.2.3:6379'))
  const error: unknown = await authenticator
    .authenticate(`Bearer ${registry.addKey().key}`, CLIENT)
    .catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'queue_unavailable', headers: { 'retry-after': '1' } })
  expect((error as Problem).message).not.toContain('10.1.2.3')
})
