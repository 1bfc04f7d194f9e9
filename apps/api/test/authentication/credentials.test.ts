import type { ApiKeyRecord } from '@sluice/projects'
import { expect, it } from 'vitest'
import { KeyLookups } from '../../src/authentication/credentials.ts'
import { FakeRegistry } from '../support/fake-registry.ts'

/** Lookups in a registry that records its round trips. */
function openLookups(): { lookups: KeyLookups; registry: FakeRegistry; roundTrips: string[][] } {
  const registry = new FakeRegistry()
  const roundTrips: string[][] = []
  const findMany = (keyHashes: readonly string[]): Promise<(ApiKeyRecord | undefined)[]> => {
    roundTrips.push([...keyHashes])
    return registry.keys.findMany(keyHashes)
  }
  return { lookups: new KeyLookups({ findMany }), registry, roundTrips }
}

it('keys of one iteration of the event loop are looked up in one round trip', async () => {
  const { lookups, registry, roundTrips } = openLookups()
  const [one, two] = [registry.addKey({ id: 'one' }), registry.addKey({ id: 'two' })]
  const hashes = [one.keyHash, 'unknown', two.keyHash]
  const records = await Promise.all(hashes.map((keyHash) => lookups.find(keyHash)))
  expect(records).toEqual([one.record, undefined, two.record])
  expect(roundTrips).toEqual([hashes])
})

it('keys that arrive during a round trip do not wait for its end', async () => {
  const { lookups, registry, roundTrips } = openLookups()
  const gate = Promise.withResolvers<void>()
  registry.beforeAnswer = () => gate.promise
  const first = lookups.find('first')
  await expect.poll(() => roundTrips).toHaveLength(1)
  registry.beforeAnswer = () => Promise.resolve()
  expect(await lookups.find('second')).toBeUndefined()
  gate.resolve()
  expect(await first).toBeUndefined()
  expect(roundTrips).toEqual([['first'], ['second']])
})

it('all keys of a round trip that fails are rejected with its error, and later ones are not', async () => {
  const { lookups, registry } = openLookups()
  const error = new Error('down')
  registry.beforeAnswer = () => Promise.reject(error)
  const results = await Promise.allSettled(['a', 'b'].map((keyHash) => lookups.find(keyHash)))
  expect(results).toEqual([
    { status: 'rejected', reason: error },
    { status: 'rejected', reason: error },
  ])
  registry.beforeAnswer = () => Promise.resolve()
  expect(await lookups.find('a')).toBeUndefined()
})
