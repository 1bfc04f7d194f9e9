import { randomUUID } from 'node:crypto'
import type { RegistryStore } from './registry-store.ts'

/**
 * Whether the projects in Redis are those of the installation:
 *
 * - `known`: they are
 * - `empty`: there are none, and no worker knows of earlier ones
 * - `lost`: there are none any more: Redis has lost its data
 * - `foreign`: there are some, and they are not those that ClickHouse has rows of: Redis has lost its data, and projects were created since
 */
export type RegistryState = 'known' | 'empty' | 'lost' | 'foreign'

/**
 * KEYS: the identity, the set of projects. ARGV: the id of the installation in ClickHouse or '', an unused id. The identity has these
 * fields: `id`; `expected`, the id in ClickHouse; `accepted`, if an operator has decided that the projects are those of the installation.
 *
 * @returns the id that ClickHouse lacks, or nil
 */
const RECONCILE = `
local id, accepted = unpack(redis.call('HMGET', KEYS[1], 'id', 'accepted'))
if ARGV[1] == '' then
  if not id and redis.call('EXISTS', KEYS[2]) == 1 then
    id = ARGV[2]
    redis.call('HSET', KEYS[1], 'id', id)
  end
  return id
end
redis.call('HSET', KEYS[1], 'expected', ARGV[1])
if accepted then
  redis.call('HSET', KEYS[1], 'id', ARGV[1])
  redis.call('HDEL', KEYS[1], 'accepted')
end`

/**
 * KEYS: the identity, the set of projects. ARGV: the id that the process has seen or ''. It counts until a worker has compared the one in
 * ClickHouse.
 *
 * @returns the state, the id
 */
const READ = `
local id, expected, accepted = unpack(redis.call('HMGET', KEYS[1], 'id', 'expected', 'accepted'))
expected = expected or ARGV[1]
local isRight = accepted or expected == '' or id == expected
if id or redis.call('EXISTS', KEYS[2]) == 1 then return { isRight and 'known' or 'foreign', id or '' } end
return { isRight and 'empty' or 'lost', '' }`

const ACCEPT = `redis.call('HSET', KEYS[1], 'accepted', '1')`

/**
 * Tells an empty Redis from a key that nobody has. The installation has a random id in Redis and in ClickHouse, which a worker compares.
 * A Redis without its data has no id, or another one.
 */
export class RegistryIdentity {
  readonly #store: RegistryStore
  /** The last id of a registry that was known. */
  #seen = ''

  constructor(store: RegistryStore) {
    this.#store = store
  }

  async read(): Promise<RegistryState> {
    const { names, run } = this.#store
    const answer = await run(READ, [names.identity, names.projects], [this.#seen])
    const [state, id] = answer as [RegistryState, string]
    if (state === 'known' && id !== '') this.#seen = id
    return state
  }

  /**
   * To be called by workers.
   *
   * @param expected the id in ClickHouse, if it has one
   * @returns the id that ClickHouse is to have, if it lacks one
   */
  async reconcile(expected: string | undefined): Promise<string | undefined> {
    const { names, run } = this.#store
    const id = await run(RECONCILE, [names.identity, names.projects], [expected ?? '', randomUUID()])
    return (id as string | null) ?? undefined
  }

  /** From now on the projects in Redis are those of the installation: an operator has imported or created them. */
  async accept(): Promise<void> {
    await this.#store.run(ACCEPT, [this.#store.names.identity], [])
  }
}
