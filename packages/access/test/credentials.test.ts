import { expect, it } from 'vitest'
import { keyLookups } from '../src/authenticator.ts'
import { FakeRegistry } from './fake-registry.ts'

const registry = new FakeRegistry()
const one = registry.addKey({ id: 'one' })
const two = registry.addKey({ id: 'two' })

it('keys of one iteration of the event loop are looked up in one round trip, and later ones do not wait for it', async () => {
  const roundTrips: string[][] = []
  const gate = Promise.withResolvers<void>()
  const lookups = keyLookups({
    identity: registry.identity,
    keys: {
      findMany: (keyHashes) => {
        roundTrips.push([...keyHashes])
        return registry.keys.findMany(keyHashes)
      },
    },
  })
  registry.beforeAnswer = () => gate.promise
  const hashes = [one.keyHash, 'unknown', two.keyHash]
  const records = Promise.all(hashes.map((keyHash) => lookups(keyHash)))
  await expect.poll(() => roundTrips).toEqual([hashes])
  registry.beforeAnswer = () => Promise.resolve()
  expect(await lookups('second')).toBeUndefined()
  gate.resolve()
  expect(await records).toEqual([one.record, undefined, two.record])
})

it('all keys of a round trip that fails are rejected with its error, and later ones are not', async () => {
  const lookups = keyLookups(registry)
  registry.beforeAnswer = () => Promise.reject(new Error('down'))
  const results = await Promise.allSettled(['a', 'b'].map((keyHash) => lookups(keyHash)))
  expect(results).toMatchObject([{ reason: { message: 'down' } }, { reason: { message: 'down' } }])
  registry.beforeAnswer = () => Promise.resolve()
  expect(await lookups('a')).toBeUndefined()
})

it.each(['empty', 'lost', 'foreign'] as const)(
  'a key that Redis does not have is not judged while the projects are %s',
  async (state) => {
    registry.state = state
    const lookups = keyLookups(registry)
    const [known, unknown] = await Promise.allSettled([lookups(one.keyHash), lookups('unknown')])
    expect([known.status, unknown.status]).toEqual(['fulfilled', 'rejected'])
    registry.state = 'known'
    expect(await lookups('unknown')).toBeUndefined()
  },
)

it('the state is read before the keys, so that a key that is restored in between is not unknown', async () => {
  const empty = new FakeRegistry()
  empty.state = 'lost'
  empty.beforeAnswer = async () => {
    empty.state = 'known'
  }
  await expect(keyLookups(empty)(one.keyHash)).rejects.toThrow('Redis has lost its projects')
})
