import { beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient } from './support/fake-client.ts'
import { pass } from './support/fake-fetch.ts'
import { raise, throwing } from './support/raise.ts'

const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
/** An error whose message throws the error itself. */
function circularError(): Error {
  const error = new Error('a')
  return Object.defineProperty(error, 'message', { get: () => raise(error) })
}

const values: [string, () => unknown][] = [
  ['a proxy that was revoked', revoked],
  ['a getter that throws a proxy that was revoked', () => throwing('a', revoked())],
  ['a toJSON that throws', () => ({ toJSON: () => raise(new Error('no')) })],
  ['a getter of toJSON that throws', () => throwing('toJSON')],
  ['a toString that throws an error that throws', () => ({ toString: () => raise(circularError()) })],
  ['an object without a prototype', () => Object.create(null) as object],
  ['an error whose message throws itself', circularError],
  ['an error whose cause is itself', () => Object.assign(circularError(), { cause: circularError() })],
  ['a symbol', () => Symbol('a')],
  ['a proxy whose names throw', () => new Proxy({}, { ownKeys: () => raise(revoked()) })],
  ['a map with a key that throws', () => new Map([[throwing('toString'), 1]])],
  ['bytes without a constructor', () => Object.setPrototypeOf(new Uint8Array(1), null)],
  ['null', () => null],
  ['a string', () => '"string"'],
]

type Call = (client: ReturnType<typeof fakeClient>['client'], value: never) => void
const entry = { level: 'info', message: 'm' } as const
const calls: [string, Call][] = [
  ['the message', (client, value) => client.info(value)],
  ['the fields', (client, value) => client.info('m', value)],
  ['a field', (client, value) => client.info('m', { value })],
  ['a nested field', (client, value) => client.info('m', { a: [{ value }] })],
  ['the context', (client, value) => client.child(value).info('m')],
  ['a value of the context', (client, value) => client.child({ value }).info('m')],
  ['an entry', (client, value) => client.send(value)],
  ['the metadata of an entry', (client, value) => client.send({ ...entry, metadata: value })],
  ['an unknown field of an entry', (client, value) => client.send({ ...entry, value })],
  ['the url of an entry', (client, value) => client.send({ ...entry, url: value })],
  ['JSON', (client, value) => client.sendJson(value)],
  ['a tag', (client, value) => client.send(entry, value)],
]

describe('no call that logs throws, and each entry is sent or reported', () => {
  beforeEach(() => void vi.useFakeTimers())

  test.each(calls.flatMap(([place, call]) => values.map(([name, make]) => ({ place, call, name, make }))))(
    '$name as $place',
    async ({ call, make }) => {
      const { client, api } = fakeClient()
      api.isAccepting = true
      expect(() => call(client, make() as never)).not.toThrow()
      await pass(1_000)
      const { accepted, rejected, dropped, queuedEntries, queuedBytes } = client.stats
      expect([accepted + rejected, dropped, queuedEntries, queuedBytes]).toEqual([1, 0, 0, 0])
    },
  )
})

test('metadata with a huge name is rejected before it is encoded', () => {
  const stringify = vi.spyOn(JSON, 'stringify')
  const { client, reported } = fakeClient()
  client.info('m', { ['x'.repeat(70_000)]: 1 })
  expect(reported.rejections).toMatchObject([{ error: { path: '/metadata', code: 'too_large' } }])
  expect(stringify).not.toHaveBeenCalledWith(expect.objectContaining({ message: 'm' }))
})

describe('a call with a huge value is rejected', () => {
  const manyNames: Record<string, number> = {}
  for (let i = 0; i < 300_000; i += 1) manyNames[`k${i}`] = i
  const huge = 'x'.repeat(10_000_000)

  test.each<[string, Call]>([
    ['many names', (client) => client.info('m', manyNames)],
    ['many names in a field', (client) => client.info('m', { a: manyNames })],
    ['many names in the context', (client) => client.child(manyNames).info('m')],
    ['many names of an entry', (client) => client.send({ ...manyNames, ...entry })],
    ['many names in the metadata', (client) => client.send({ ...entry, metadata: manyNames, other: 1 })],
    // A copy of it would not fit into memory.
    ['a sparse array', (client) => client.info('m', { a: Object.assign([], { length: 4_294_967_295 }) })],
    ['a long message', (client) => client.info(huge)],
    ['a long field', (client) => client.info('m', { a: huge })],
    ['long fields', (client) => client.info('m', huge as never)],
    ['a long timestamp', (client) => client.send({ ...entry, timestamp: huge })],
    ['long JSON', (client) => client.sendJson(huge)],
    // As decimal digits, it would take minutes.
    ['a number with many digits', (client) => client.info('m', { a: 1n << 100_000_000n })],
    ['a long stack', (client) => client.error(Object.assign(new Error('m'), { stack: huge }))],
  ])('%s', (_name, call) => {
    const { client, reported } = fakeClient()
    call(client, undefined as never)
    expect(reported.rejections).toHaveLength(1)
    expect(client.stats).toMatchObject({ queuedEntries: 0, rejected: 1 })
  })

  test.each([
    ['the fields', 257, (value: object) => value],
    ['a field', 65_536, (value: object) => ({ a: value })],
  ])('and is read only up to the limits, as %s', (_name, readsMax, place) => {
    const get = vi.fn<(target: object, name: string | symbol) => unknown>(() => 1)
    const { client } = fakeClient()
    client.info('m', place(new Proxy(manyNames, { get })))
    expect(client.stats.rejected).toBe(1)
    // Besides the names, some symbols and methods are looked up. A second attempt leaves the properties of errors out.
    expect(get.mock.calls.length).toBeLessThan(2 * (readsMax + 20))
  })
})
