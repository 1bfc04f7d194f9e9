import type { ApiKeyRecord, ApiKeys, Project, Projects, RegistryIdentity } from '@sluice/projects'
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
   * How long a credential is trusted, in ms, from the start of its lookup. A change may take five seconds, so this value must be lower. It
   * must be higher than the duration of a lookup, which is two commands of at most 1.8 s, for its result to be kept.
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
export type FindKey = (keyHash: string) => Promise<ApiKeyRecord | undefined>

interface Records {
  readonly records: readonly (ApiKeyRecord | undefined)[]
  /** Whether a key without a record does not exist. */
  readonly areAll: boolean
}
