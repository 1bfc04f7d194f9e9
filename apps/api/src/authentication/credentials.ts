import type { ApiKeyRecord, ApiKeys, Project, Projects, RegistryIdentity } from '@sluice/projects'
import { LRUCache } from 'lru-cache'
import { setImmediate } from 'node:timers/promises'

/** The part of the registry that a lookup reads. */
export interface CredentialSource {
  readonly keys: Pick<ApiKeys, 'findMany'>
  readonly projects: Pick<Projects, 'find'>
  readonly identity: Pick<RegistryIdentity, 'read'>
}

export interface KnownCredential {
  readonly record: ApiKeyRecord
  /** Undefined when it is deleted. */
  readonly project: Project | undefined
}

/** The result of a key's lookup. */
export type Credential = KnownCredential | 'unknown'

export const credentialLimits = {
  /**
   * How long a credential is trusted, in ms, from the start of its lookup. Changes are published and take effect at once;
   * this is the bound if a notification is lost. A revocation may take five seconds, so this value must be lower. The
   * duration of a lookup must be lower as well: it is two commands of at most 1.8 s.
   */
  trustMs: 3_000,
  /** 10,000 of about 800 bytes: 8 MB. If more keys than that are used within three seconds, each further one is a lookup. */
  knownMax: 10_000,
  /** 10,000 of about 200 bytes: 2 MB. */
  unknownMax: 10_000,
  /**
   * Lookups in flight, for keys that this process has never seen. More means that Redis stalls, or that many clients guess keys:
   * this is the number of guesses that are looked up in a quarter of a second. 5,000 take about 10 MB with their requests.
   */
  lookupsMax: 5_000,
} as const

/** Distinguishes the hash of a key from the id of a project, which is shorter. */
const KEY_HASH = /^[0-9a-f]{64}$/

interface Known {
  readonly credential: KnownCredential
  /** Until when it is trusted, on the monotonic clock. Later, the key is still remembered as a valid one. */
  trustedUntilMs: number
}

/**
 * Caches the results of lookups, so that a cached key costs no round trip.
 *
 * A key is unseen → being looked up → known or unknown. Known and unknown keys are cached separately, so that no number of
 * guesses evicts a key that exists. A known key whose trust has expired is looked up even while unseen keys are rejected.
 */
export class Credentials {
  readonly #findKey: FindKey
  readonly #projects: CredentialSource['projects']
  readonly #known = new LRUCache<string, Known>({ max: credentialLimits.knownMax })
  /** Until when a key is considered unknown, on the monotonic clock. */
  readonly #unknownUntilMs = new LRUCache<string, number>({ max: credentialLimits.unknownMax })
  /** Lookups in flight, without those that a change has made obsolete. */
  readonly #lookups = new Map<string, Promise<Credential>>()

  constructor(registry: CredentialSource) {
    this.#findKey = keyLookups(registry)
    this.#projects = registry.projects
  }

  /** The cached result, if it is still trusted. */
  peek(keyHash: string, monotonicMs: number): Credential | undefined {
    const known = this.#known.get(keyHash)
    if (known !== undefined) return known.trustedUntilMs > monotonicMs ? known.credential : undefined
    return (this.#unknownUntilMs.get(keyHash) ?? 0) > monotonicMs ? 'unknown' : undefined
  }

  /** What the last lookup of the key found, however long ago. */
  familiar(keyHash: string): KnownCredential | undefined {
    return this.#known.peek(keyHash)?.credential
  }

  /** How many lookups are in flight. */
  get lookupsInFlight(): number {
    return this.#lookups.size
  }

  /** The lookup of the key that is in flight: concurrent requests with the same key share it. */
  lookupInFlight(keyHash: string): Promise<Credential> | undefined {
    return this.#lookups.get(keyHash)
  }

  /** Rejects with the registry's error, also for requests that share the lookup. */
  lookUp(keyHash: string, monotonicMs: number): Promise<Credential> {
    const lookup = this.#find(keyHash).then((credential) => {
      // A change during the lookup makes its result obsolete, but requests that wait for it do not fail.
      if (this.#lookups.get(keyHash) === lookup) this.#keep(keyHash, credential, monotonicMs)
      return credential
    })
    this.#lookups.set(keyHash, lookup)
    const end = (): void => {
      if (this.#lookups.get(keyHash) === lookup) this.#lookups.delete(keyHash)
    }
    lookup.then(end, end)
    return lookup
  }

  /** Stops trusting what is cached of a changed key (given its hash) or of the keys of a changed project (given its id). */
  invalidate(change: string): void {
    if (KEY_HASH.test(change)) {
      this.#lookups.delete(change)
      this.#unknownUntilMs.delete(change)
      const known = this.#known.peek(change)
      if (known !== undefined) known.trustedUntilMs = 0
    } else {
      this.#lookups.clear()
      for (const known of this.#known.values()) {
        if (known.credential.record.projectId === change) known.trustedUntilMs = 0
      }
    }
  }

  async #find(keyHash: string): Promise<Credential> {
    const record = await this.#findKey(keyHash)
    if (record === undefined) return 'unknown'
    return { record, project: await this.#projects.find(record.projectId) }
  }

  #keep(keyHash: string, credential: Credential, startedMs: number): void {
    const trustedUntilMs = startedMs + credentialLimits.trustMs
    if (credential === 'unknown') {
      this.#known.delete(keyHash)
      this.#unknownUntilMs.set(keyHash, trustedUntilMs)
    } else {
      this.#unknownUntilMs.delete(keyHash)
      this.#known.set(keyHash, { credential, trustedUntilMs })
    }
  }
}

/**
 * Looks up all keys of one iteration of the event loop in one round trip. While clients guess keys, a lookup then costs Redis a
 * fraction of a separate command, so every key can be looked up. The caller limits their number.
 */
export function keyLookups({ keys, identity }: Pick<CredentialSource, 'keys' | 'identity'>): FindKey {
  /** The hashes of the keys that are looked up together, and their records. */
  let gathered: string[] = []
  let sent: Promise<Records> | undefined

  async function send(): Promise<Records> {
    await setImmediate()
    const hashes = gathered
    gathered = []
    sent = undefined
    // Sent first, and on the same connection: if Redis is restored between the two reads, no missing key counts as unknown.
    const state = identity.read().catch(() => undefined)
    const records = await keys.findMany(hashes)
    return { records, areAll: !records.includes(undefined) || (await state) === 'known' }
  }

  return async (keyHash) => {
    const index = gathered.push(keyHash) - 1
    sent ??= send()
    const { records, areAll } = await sent
    const record = records[index]
    if (record === undefined && !areAll) throw new Error('Redis has lost its projects, or has none yet')
    return record
  }
}

/** Rejects with the registry's error, or if Redis does not have the key and may have lost it. */
type FindKey = (keyHash: string) => Promise<ApiKeyRecord | undefined>

interface Records {
  readonly records: readonly (ApiKeyRecord | undefined)[]
  /** Whether a key without a record does not exist. */
  readonly areAll: boolean
}
