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

/** KEYS: the identity, the set of projects. */
const READ = `
local id, expected, accepted = unpack(redis.call('HMGET', KEYS[1], 'id', 'expected', 'accepted'))
local isRight = accepted or not expected or id == expected
if id or redis.call('EXISTS', KEYS[2]) == 1 then return isRight and 'known' or 'foreign' end
return isRight and 'empty' or 'lost'`

/** KEYS: the identity. */
const ACCEPT = `redis.call('HSET', KEYS[1], 'accepted', '1')`

/**
 * Tells an empty Redis from a key that nobody has. The installation has a random id in Redis and in ClickHouse, which a worker compares.
 * A Redis without its data has no id, or another one.
 */
export class RegistryIdentity {
  readonly #store: RegistryStore

  constructor(store: RegistryStore) {
    this.#store = store
  }

  async read(): Promise<RegistryState> {
    const { names, run } = this.#store
    return (await run(READ, [names.identity, names.projects], [])) as RegistryState
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
