import { type ApiKeyRecord, createKey, keyFromHash, type KeyBackup, keyToHash } from './api-key.ts'
import { noSuchProject, PROJECT_ID } from './projects.ts'
import { RegistryError, type RegistryStore } from './registry-store.ts'
import { CREATE_KEY, RECORD_KEY_USES, REVOKE_KEY } from './scripts.ts'

/** Redis runs nothing else during a script. At about 2 µs per key, 1,000 keys take 2 ms. */
const KEY_USES_PER_SCRIPT_MAX = 1_000

/**
 * The API keys in Redis. Every change is one Lua script.
 *
 * A key is looked up by the SHA-256 of what a client sent. This comparison does not need constant time: an attacker who measures it learns
 * at most how long a prefix of a hash matches a stored hash. To match more, the attacker must try as many keys as without that knowledge.
 */
export class ApiKeys {
  readonly #store: RegistryStore

  constructor(store: RegistryStore) {
    this.#store = store
  }

  /**
   * @returns the key itself, which is stored nowhere, and its record
   * @throws RegistryError when there is no such project, the name is too long, or there is no scope
   */
  async create(
    projectId: string,
    options: Partial<Pick<ApiKeyRecord, 'name' | 'scopes'>> & { expiresAt?: Date } = {},
  ): Promise<{ key: string; record: ApiKeyRecord }> {
    const { name = '', scopes = ['ingest'] } = options
    const fields = { projectId, name, scopes, expiresAt: options.expiresAt?.toISOString() }
    const { key, keyHash, record } = createKey(fields, this.#store.now())
    if (!PROJECT_ID.test(projectId) || (await this.#add(keyHash, record)) !== null)
      throw noSuchProject(projectId)
    return { key, record }
  }

  /**
   * Replaces a key with a new key of the same project, name, scopes and lifetime. The old key expires after the
   * overlap, or at its own expiry if that is earlier.
   *
   * @throws RegistryError when there is no such key, or it is not active, or was already rotated
   */
  async rotate(
    keyId: string,
    overlapMs: number,
  ): Promise<{ key: string; record: ApiKeyRecord; replaced: ApiKeyRecord }> {
    const { keyHash: oldHash, record: old } = await this.#findById(keyId)
    const nowMs = this.#store.now()
    const { projectId, name, scopes, createdAt } = old
    const expiresAt =
      old.expiresAt && new Date(nowMs + Date.parse(old.expiresAt) - Date.parse(createdAt)).toISOString()
    const { key, keyHash, record } = createKey({ projectId, name, scopes, expiresAt }, nowMs)
    const oldExpiresAt = new Date(nowMs + overlapMs).toISOString()
    const rejection = await this.#add(keyHash, record, { hash: oldHash, expiresAt: oldExpiresAt })
    if (rejection !== null) throw new RegistryError(`the key ${keyId} cannot be rotated: ${rejection}`)
    return { key, record, replaced: (await this.find(oldHash)) ?? old }
  }

  /** All keys of a project, oldest first. They include revoked ones. */
  async list(projectId: string): Promise<ApiKeyRecord[]> {
    return (await this.#ofProject(projectId)).map(({ record }) => record)
  }

  /** The keys of `list` with their hashes. */
  async export(projectId: string): Promise<KeyBackup[]> {
    const keys = await this.#ofProject(projectId)
    return keys.map(({ hash, record: { projectId: _id, ...fields } }) => Object.assign(fields, { hash }))
  }

  /** @param keyHash from `hashApiKey` */
  async find(keyHash: string): Promise<ApiKeyRecord | undefined> {
    return keyFromHash(await this.#store.redis.hgetall(this.#store.names.apiKey(keyHash)))
  }

  /** As `find`, in one round trip and in the same order. Rejects if the lookup of one of them fails. */
  async findMany(keyHashes: readonly string[]): Promise<(ApiKeyRecord | undefined)[]> {
    const pipeline = this.#store.redis.pipeline()
    for (const keyHash of keyHashes) pipeline.hgetall(this.#store.names.apiKey(keyHash))
    const replies = (await pipeline.exec()) ?? []
    return replies.map(([error, fields]) => {
      if (error !== null) throw error
      return keyFromHash(fields as Record<string, string>)
    })
  }

  /** Revokes a key permanently. Revoking a revoked key changes nothing. @throws RegistryError when there is no such key */
  async revoke(keyId: string): Promise<ApiKeyRecord> {
    const { keyHash, record } = await this.#findById(keyId)
    const { names, now, run } = this.#store
    const revokedAt = await run(REVOKE_KEY, [names.apiKey(keyHash)], [new Date(now()).toISOString()])
    if (typeof revokedAt !== 'string') throw noSuchKey(keyId)
    return { ...record, revokedAt }
  }

  /** @param uses key hash → time of the key's last use, ms since 1970 */
  async recordUses(uses: ReadonlyMap<string, number>): Promise<void> {
    const all = [...uses]
    for (let from = 0; from < all.length; from += KEY_USES_PER_SCRIPT_MAX) {
      const some = all.slice(from, from + KEY_USES_PER_SCRIPT_MAX)
      await this.#store.run(
        RECORD_KEY_USES,
        some.map(([keyHash]) => this.#store.names.apiKey(keyHash)),
        some.map(([, usedMs]) => new Date(usedMs).toISOString()),
      )
    }
  }

  /** Stores a new key, which may replace an old one. Resolves with what CREATE_KEY returns. */
  #add(hash: string, record: ApiKeyRecord, old = { hash: '', expiresAt: '' }): Promise<string | null> {
    const { names, run } = this.#store
    const { id, projectId: owner, createdAt } = record
    const keys = [names.project(owner), names.keysOfProject(owner), names.apiKey(hash), names.keyIds]
    if (old.hash !== '') keys.push(names.apiKey(old.hash))
    const args = [hash, id, createdAt, old.expiresAt, ...keyToHash(record)]
    return run(CREATE_KEY, keys, args) as Promise<string | null>
  }

  async #ofProject(projectId: string): Promise<{ hash: string; record: ApiKeyRecord }[]> {
    const hashes = await this.#store.redis.smembers(this.#store.names.keysOfProject(projectId))
    const records = await this.findMany(hashes)
    return hashes
      .flatMap((hash, i) => (records[i] === undefined ? [] : [{ hash, record: records[i] }]))
      .toSorted((a, b) => a.record.createdAt.localeCompare(b.record.createdAt))
  }

  async #findById(keyId: string): Promise<{ keyHash: string; record: ApiKeyRecord }> {
    const keyHash = await this.#store.redis.hget(this.#store.names.keyIds, keyId)
    const record = keyHash === null ? undefined : await this.find(keyHash)
    if (keyHash === null || record === undefined) throw noSuchKey(keyId)
    return { keyHash, record }
  }
}

const noSuchKey = (keyId: string): RegistryError => new RegistryError(`there is no key ${keyId}`)
