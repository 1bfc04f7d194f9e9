import { generateApiKey } from '@sluice/projects'
import { beforeEach, describe, expect, it } from 'vitest'
import { Authenticator } from '../src/authenticator.ts'
import { credentialLimits } from '../src/authenticator.ts'
import { attemptLimits } from '../src/failed-attempts.ts'
import { HttpProblem as Problem } from '../src/problems.ts'
import { authenticatorOptions, FakeRegistry } from './fake-registry.ts'

const { addressBurst, spareShare, totalBurst, totalPerSecond } = attemptLimits
const GUESSER = '192.0.2.66'

let registry: FakeRegistry
let clockMs: number
let authenticator: Authenticator

beforeEach(() => {
  registry = new FakeRegistry()
  registry.addProject()
  clockMs = 1_000_000
  authenticator = new Authenticator(registry, { ...authenticatorOptions, monotonicMs: () => clockMs })
})

/** The id of the project, or the problem. */
const authenticate = (key: string, ip: string): Promise<string | Problem> =>
  authenticator.authenticate(`Bearer ${key}`, { ip, socket: {} }).then(
    ({ id }) => id,
    (error: unknown) => {
      if (error instanceof Problem) return error
      throw error
    },
  )
const address = (i: number): string => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`
const codeOf = (answer: string | Problem): string => (answer instanceof Problem ? answer.code : answer)
const guess = async (ip = GUESSER): Promise<string> => codeOf(await authenticate(generateApiKey(), ip))

const useUpAttempts = async (): Promise<void> => {
  for (let i = 0; i < addressBurst; i += 1) expect(await guess()).toBe('unauthorized')
}

describe('an address that sends unknown keys', () => {
  it('gets Retry-After when its attempts are used up', async () => {
    await useUpAttempts()
    const answer = await authenticate(generateApiKey(), GUESSER)
    expect(answer).toMatchObject({ code: 'too_many_failed_attempts', headers: { 'retry-after': '1' } })
    for (let i = 0; i < 100; i += 1) expect(await guess()).toBe('too_many_failed_attempts')
    clockMs += 1_000
    expect(await guess()).toBe('unauthorized')
    expect(await guess()).toBe('too_many_failed_attempts')
  })
})

describe('a valid key from an address that guesses', () => {
  it('that was accepted before is still accepted, cached or not', async () => {
    const { key } = registry.addKey()
    expect(await authenticate(key, GUESSER)).toBe('demo')
    await useUpAttempts()
    expect(await authenticate(key, GUESSER)).toBe('demo')
    for (let round = 0; round < 10; round += 1) {
      clockMs += credentialLimits.trustMs
      for (let i = 0; i < addressBurst; i += 1) await guess()
      expect(await guess()).toBe('too_many_failed_attempts')
      expect(await authenticate(key, GUESSER)).toBe('demo')
    }
  })

  it('that was never seen is accepted at once', async () => {
    await useUpAttempts()
    for (let i = 0; i < 100; i += 1) {
      expect(await guess()).toBe('too_many_failed_attempts')
      expect(await authenticate(registry.addKey().key, GUESSER)).toBe('demo')
    }
  })
})

/** Sends guesses in equal parts of the time. @returns how many got each code */
async function guessMany(
  count: number,
  overMs: number,
  addressOf: (i: number) => string,
): Promise<Map<string, number>> {
  const answers = new Map<string, number>()
  const atOnce = 100
  for (let start = 0; start < count; start += atOnce) {
    clockMs += (overMs * atOnce) / count
    const codes = await Promise.all(Array.from({ length: atOnce }, (_, i) => guess(addressOf(start + i))))
    for (const code of codes) answers.set(code, (answers.get(code) ?? 0) + 1)
  }
  return answers
}

it('guesses from one address use a share of the lookups, and keys from other addresses are still looked up', async () => {
  const answers = await guessMany(2 * totalPerSecond, 1_000, () => GUESSER)
  expect([...answers.keys()].toSorted()).toEqual(['overloaded', 'too_many_failed_attempts', 'unauthorized'])
  expect(registry.lookups).toBeLessThanOrEqual(totalBurst * spareShare + totalPerSecond + 100)
  expect(codeOf(await authenticate(registry.addKey().key, GUESSER))).toBe('overloaded')
  for (let i = 0; i < totalBurst * spareShare - 200; i += 1) {
    if ((await guess(address(i))) !== 'unauthorized') throw new Error(`not looked up: ${i}`)
  }
  expect(await authenticate(registry.addKey().key, '192.0.2.1')).toBe('demo')
})

describe('guesses from many addresses', () => {
  it('are looked up at a limited rate, and valid keys are still accepted', async () => {
    const { key } = registry.addKey()
    expect(await authenticate(key, GUESSER)).toBe('demo')
    const before = registry.lookups
    const answers = await guessMany(3 * totalPerSecond, 1_000, address)
    expect([...answers.keys()].toSorted()).toEqual(['overloaded', 'unauthorized'])
    expect(registry.lookups - before).toBeLessThanOrEqual(totalBurst + totalPerSecond + 100)
    expect(registry.lookups - before).toBeGreaterThan(totalPerSecond)
    clockMs += credentialLimits.trustMs
    expect(await authenticate(key, GUESSER)).toBe('demo')
  })

  it('are limited in number while the registry stalls, and valid keys are not affected', async () => {
    const { key } = registry.addKey()
    await authenticate(key, GUESSER)
    clockMs += credentialLimits.trustMs
    const gate = Promise.withResolvers<void>()
    registry.beforeAnswer = () => gate.promise
    const waiting = Array.from({ length: credentialLimits.lookupsMax }, (_, i) => guess(address(i)))
    const rejected = await authenticate(generateApiKey(), '192.0.2.1')
    expect(rejected).toMatchObject({ code: 'overloaded', headers: { 'retry-after': '1' } })
    const passing = authenticate(key, GUESSER)
    gate.resolve()
    expect(await passing).toBe('demo')
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['unauthorized']))
    clockMs += 10_000
    expect(await guess()).toBe('unauthorized')
  })

  it('from addresses without attempts leave half of the lookups in flight to others', async () => {
    await useUpAttempts()
    const gate = Promise.withResolvers<void>()
    registry.beforeAnswer = () => gate.promise
    const waiting = Array.from({ length: credentialLimits.lookupsMax * spareShare }, () => guess())
    expect(await guess()).toBe('overloaded')
    const passing = authenticate(registry.addKey().key, '192.0.2.1')
    gate.resolve()
    expect(await passing).toBe('demo')
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['too_many_failed_attempts']))
  })

  it('evict no valid key', async () => {
    const { key } = registry.addKey()
    await authenticate(key, GUESSER)
    // At the maximum rate of lookups, so that every key is looked up.
    const guesses = credentialLimits.knownMax + credentialLimits.unknownMax
    await guessMany(guesses, (guesses / totalPerSecond) * 1_000, address)
    expect(registry.lookups).toBe(guesses + 1)
    await useUpAttempts()
    expect(await guess()).toBe('too_many_failed_attempts')
    expect(await authenticate(key, GUESSER)).toBe('demo')
  })
})
