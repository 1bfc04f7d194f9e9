import type { ApiKeyRecord, Project, Registry } from '@sluice/projects'
import { LRUCache } from 'lru-cache'

/** What a key is taken for. */
export type Credential = KnownCredential | 'unknown'

export interface KnownCredential {
  readonly record: ApiKeyRecord
  /** Undefined when it is gone. */
  readonly project: Project | undefined
}

export const credentialLimits = {
  /**
   * How long a credential is trusted, ms, from the moment its look-up begins. Changes are published and take effect at
   * once; this bounds it when the news is lost. It must stay below the five seconds that a revocation may take, and so
   * must a look-up itself: two commands of 1.8 s.
   */
  trustMs: 3_000,
  /** 10,000 of some 800 bytes: 8 MB. More keys than that in three seconds cost a look-up each. */
  knownMax: 10_000,
  /** 10,000 of some 200 bytes: 2 MB. */
  unknownMax: 10_000,
  /**
   * Look-ups under way of keys that were never seen here: 1,000 take Redis some 10 ms. More means that Redis hangs, or
   * that keys are guessed from everywhere.
   */
  lookUpsMax: 1_000,
} as const

/** What tells a key's hash from a project's id, which is shorter. */
const KEY_HASH = /^[0-9a-f]{64}$/

interface Known {
  readonly credential: KnownCredential
  /** Until when it is trusted, by the monotonic clock, ms. Afterwards the key is still one that was good once. */
  trustedUntilMs: number
}

/**
 * Keys and what they are taken for, so that a warm key costs no round trip.
 *
 * A key is unseen → being looked up → known or unknown. Known and unknown ones are kept apart, so that no number of
 * guesses drives out a key that exists. A known one that is trusted no longer is looked up again before all others.
 */
export class Credentials {
  readonly #registry: Pick<Registry, 'findKey' | 'findProject'>
  readonly #known = new LRUCache<string, Known>({ max: credentialLimits.knownMax })
  /** Until when a key is taken to be unknown. */
  readonly #unknownUntilMs = new LRUCache<string, number>({ max: credentialLimits.unknownMax })
  /** Look-ups under way that no change has overtaken. */
  readonly #lookUps = new Map<string, Promise<Credential>>()

  constructor(registry: Pick<Registry, 'findKey' | 'findProject'>) {
    this.#registry = registry
  }

  /** How many keys are remembered, of either kind. */
  get size(): number {
    return this.#known.size + this.#unknownUntilMs.size
  }

  /** What a key is taken for without a look-up. */
  peek(keyHash: string, nowMs: number): Credential | undefined {
    const known = this.#known.get(keyHash)
    if (known !== undefined) return known.trustedUntilMs > nowMs ? known.credential : undefined
    return (this.#unknownUntilMs.get(keyHash) ?? 0) > nowMs ? 'unknown' : undefined
  }

  /** Whether the key was good for something when it was looked up last, however long ago. */
  isFamiliar(keyHash: string): boolean {
    return this.#known.has(keyHash)
  }

  /** Whether as many look-ups are under way as there may be. */
  get isBusy(): boolean {
    return this.#lookUps.size >= credentialLimits.lookUpsMax
  }

  /** The look-up of the key that is under way: requests that come with one key at the same time share it. */
  underWay(keyHash: string): Promise<Credential> | undefined {
    return this.#lookUps.get(keyHash)
  }

  /** @throws whatever the registry throws, now and to those who share the look-up */
  lookUp(keyHash: string, nowMs: number): Promise<Credential> {
    const lookUp = this.#find(keyHash).then((credential) => {
      // A change during the look-up lets go of its result, but does not fail those who wait for it.
      if (this.#lookUps.get(keyHash) === lookUp) this.#keep(keyHash, credential, nowMs)
      return credential
    })
    this.#lookUps.set(keyHash, lookUp)
    const end = (): void => {
      if (this.#lookUps.get(keyHash) === lookUp) this.#lookUps.delete(keyHash)
    }
    lookUp.then(end, end)
    return lookUp
  }

  /** Trusts nothing any more of what changed: one key by its hash, or the keys of a project by its id. */
  invalidate(change: string): void {
    if (KEY_HASH.test(change)) {
      this.#lookUps.delete(change)
      this.#unknownUntilMs.delete(change)
      const known = this.#known.peek(change)
      if (known !== undefined) known.trustedUntilMs = 0
    } else {
      this.#lookUps.clear()
      for (const known of this.#known.values()) {
        if (known.credential.record.projectId === change) known.trustedUntilMs = 0
      }
    }
  }

  async #find(keyHash: string): Promise<Credential> {
    const record = await this.#registry.findKey(keyHash)
    if (record === undefined) return 'unknown'
    return { record, project: await this.#registry.findProject(record.projectId) }
  }

  #keep(keyHash: string, credential: Credential, askedMs: number): void {
    const trustedUntilMs = askedMs + credentialLimits.trustMs
    if (credential === 'unknown') {
      this.#known.delete(keyHash)
      this.#unknownUntilMs.set(keyHash, trustedUntilMs)
    } else {
      this.#unknownUntilMs.delete(keyHash)
      this.#known.set(keyHash, { credential, trustedUntilMs })
    }
  }
}
