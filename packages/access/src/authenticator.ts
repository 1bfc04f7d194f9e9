import {
  type ApiKeyRecord,
  type ApiKeys,
  hashApiKey,
  isWellFormedApiKey,
  type Project,
  type Projects,
  type RegistryIdentity,
  type Scope,
} from '@sluice/projects'
import { LRUCache } from 'lru-cache'
import { setImmediate } from 'node:timers/promises'
import { attemptLimits, FailedAttempts } from './failed-attempts.ts'
import type { KeyUsage } from './key-usage.ts'
import { type CommonProblemCode, commonProblems, HttpProblem, type ProblemExtra } from './problems.ts'

const SCHEME = /^bearer +(\S+)$/i

export interface AuthenticatorOptions {
  /** What keys must allow, unless a call says otherwise. */
  readonly scope: Scope
  readonly usage: Pick<KeyUsage, 'recordUse'>
  /** The clock of all API processes: keys expire by it. It may throw ClockError. */
  readonly wallMs: () => number
  readonly monotonicMs: () => number
}

type Identified = (project: Project, scopes: readonly Scope[]) => void

interface CredentialSource {
  readonly keys: Pick<ApiKeys, 'findMany'>
  readonly projects: Pick<Projects, 'find'>
  readonly identity: Pick<RegistryIdentity, 'read'>
}

interface KnownCredential {
  readonly record: ApiKeyRecord
  /** Undefined when it is deleted. */
  readonly project: Project | undefined
  /** Until when it is trusted, on the monotonic clock. Later, the key is still remembered as a valid one. */
  readonly trustedUntilMs: number
}

type Credential = KnownCredential | 'unknown'

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
 * Maps the API key of a request to its project. It caches the results of lookups, so that a cached key costs no round trip.
 *
 * A key is unseen → being looked up → known or unknown. Known and unknown keys are cached separately, so that no number of
 * guesses evicts a key that exists. A known key whose trust has expired is looked up even while unseen keys are rejected.
 */
export class Authenticator {
  readonly #findKey: ReturnType<typeof keyLookups>
  readonly #projects: CredentialSource['projects']
  readonly #known = new LRUCache<string, KnownCredential>({ max: credentialLimits.knownMax })
  /** Until when a key is considered unknown, on the monotonic clock. */
  readonly #unknownUntilMs = new LRUCache<string, number>({ max: credentialLimits.unknownMax })
  /** Lookups in flight. Concurrent requests with the same key share one. */
  readonly #lookups = new Map<string, Promise<Credential>>()
  /**
   * The header of the last request of each connection, and the hash of its key: most clients send the same in each request. A key stays in
   * memory for as long as its connection is open, and only its hash says who the client is.
   */
  readonly #last = new WeakMap<object, { readonly header: string; readonly keyHash: string }>()
  readonly #failedAttempts = new FailedAttempts()
  readonly #options: AuthenticatorOptions
  /** Valid keys that Redis had, and does not have any more. */
  keysLost = 0

  constructor(registry: CredentialSource, options: AuthenticatorOptions) {
    this.#findKey = keyLookups(registry)
    this.#projects = registry.projects
    this.#options = options
  }

  /**
   * The project of the key in an Authorization header.
   *
   * @param client the sender of the request; its address is read only if the key must be looked up
   * @param identified called with the project and the scopes of a valid key, before these and the state of the project are checked
   * @throws Problem `unauthorized`, `forbidden`, `project_not_found`, `too_many_failed_attempts`, `overloaded`; ClockError if the key is valid
   *   and the clock is not known
   */
  async authenticate(
    header: string | undefined,
    client: { readonly ip: string; readonly socket: object },
    identified?: Identified,
  ): Promise<Project> {
    return this.authenticateHash(this.hashOf(header, client.socket), client, identified)
  }

  /** As `authenticate`, for the hash of the key of a session. @param scopes the key must have one of them */
  async authenticateHash(
    keyHash: string,
    client: { readonly ip: string },
    identified?: Identified,
    scopes: readonly Scope[] = [this.#options.scope],
  ): Promise<Project> {
    const credential = this.#peek(keyHash) ?? (await this.#lookUp(keyHash, client.ip))
    if (credential === 'unknown' || !this.#isValid(credential)) throw unauthorized()
    const { record, project } = credential
    if (project !== undefined) identified?.(project, record.scopes)
    if (!scopes.some((scope) => record.scopes.includes(scope)))
      throw problem('forbidden', missingScopeDetail(scopes, record.scopes))
    if (project?.enabled !== true)
      throw problem('project_not_found', `The project ${record.projectId} is deleted or disabled.`)
    this.#options.usage.recordUse(keyHash, this.#options.wallMs())
    return project
  }

  /** The hash of the key in a header. @throws Problem `unauthorized` */
  hashOf(header: string | undefined, socket: object): string {
    const last = this.#last.get(socket)
    if (last !== undefined && last.header === header) return last.keyHash
    const key = header === undefined ? undefined : SCHEME.exec(header)?.[1]
    if (header === undefined || key === undefined || !isWellFormedApiKey(key)) throw unauthorized()
    const keyHash = hashApiKey(key)
    this.#last.set(socket, { header, keyHash })
    return keyHash
  }

  #isValid({ record: { deletedAt, expiresAt, revokedAt }, project }: KnownCredential): boolean {
    if (revokedAt !== undefined || (project !== undefined && deletedAt !== undefined)) return false
    return expiresAt === undefined || Date.parse(expiresAt) > this.#options.wallMs()
  }

  #peek(keyHash: string): Credential | undefined {
    const nowMs = this.#options.monotonicMs()
    const known = this.#known.get(keyHash)
    if (known !== undefined) return known.trustedUntilMs > nowMs ? known : undefined
    return (this.#unknownUntilMs.get(keyHash) ?? 0) > nowMs ? 'unknown' : undefined
  }

  async #lookUp(keyHash: string, address: string): Promise<Credential> {
    const inFlight = this.#lookups.get(keyHash)
    if (inFlight !== undefined) return orUnavailable(inFlight)
    const nowMs = this.#options.monotonicMs()
    const familiar = this.#known.peek(keyHash)
    // Keys that were valid before are always looked up, however many keys clients guess.
    if (familiar === undefined) this.#admit(address, nowMs)
    const credential = await orUnavailable(this.#startLookup(keyHash, nowMs))
    if (credential !== 'unknown') return credential
    if (familiar === undefined) {
      const waitMs = this.#failedAttempts.record(address, nowMs)
      if (waitMs > 0) throw problem('too_many_failed_attempts', undefined, retryIn(Math.ceil(waitMs / 1_000)))
    } else if (familiar.project !== undefined && this.#isValid(familiar)) {
      // All others keep their records.
      this.keysLost += 1
    }
    return credential
  }

  /** Rejects with the registry's error, also for requests that share the lookup. */
  #startLookup(keyHash: string, startedMs: number): Promise<Credential> {
    const lookup = this.#find(keyHash, startedMs + credentialLimits.trustMs).finally(() =>
      this.#lookups.delete(keyHash),
    )
    this.#lookups.set(keyHash, lookup)
    return lookup
  }

  async #find(keyHash: string, trustedUntilMs: number): Promise<Credential> {
    const record = await this.#findKey(keyHash)
    if (record === undefined) {
      this.#known.delete(keyHash)
      this.#unknownUntilMs.set(keyHash, trustedUntilMs)
      return 'unknown'
    }
    const credential = { record, project: await this.#projects.find(record.projectId), trustedUntilMs }
    this.#unknownUntilMs.delete(keyHash)
    this.#known.set(keyHash, credential)
    return credential
  }

  /**
   * Throws if a key that this process has never seen must not be looked up now. A key from an address that guesses is looked up as
   * long as there is room for it: it may be the valid key of another client with the same address.
   */
  #admit(address: string, nowMs: number): void {
    const share = this.#failedAttempts.hasAttempts(address, nowMs) ? 1 : attemptLimits.spareShare
    const isBusy = this.#lookups.size >= credentialLimits.lookupsMax * share
    if (isBusy || !this.#failedAttempts.hasTotal(share, nowMs)) {
      throw problem('overloaded', 'Too many API keys are being checked. Retry.', retryIn(1))
    }
  }
}

/**
 * Looks up all keys of one iteration of the event loop in one round trip. While clients guess keys, a lookup then costs Redis a
 * fraction of a separate command, so every key can be looked up. The caller limits their number.
 *
 * @returns rejects with the registry's error, or if Redis does not have the key and may have lost it
 */
export function keyLookups({ keys, identity }: Pick<CredentialSource, 'keys' | 'identity'>) {
  /** The hashes of the keys that are looked up together, and their records. */
  let gathered: string[] = []
  let sent: ReturnType<typeof send> | undefined

  async function send() {
    await setImmediate()
    const hashes = gathered
    gathered = []
    sent = undefined
    // Sent first, and on the same connection: if Redis is restored between the two reads, no missing key counts as unknown.
    const state = identity.read().catch(() => undefined)
    const records = await keys.findMany(hashes)
    // Whether a key without a record does not exist.
    const areAll = !records.includes(undefined) || (await state) === 'known'
    return { records, areAll }
  }

  return async (keyHash: string): Promise<ApiKeyRecord | undefined> => {
    const index = gathered.push(keyHash) - 1
    sent ??= send()
    const { records, areAll } = await sent
    const record = records[index]
    if (record === undefined && !areAll) throw new Error('Redis has lost its projects, or has none yet')
    return record
  }
}

function orUnavailable(lookup: Promise<Credential>): Promise<Credential> {
  return lookup.catch(() => {
    throw problem('queue_unavailable', 'The API key cannot be checked at present. Retry.', retryIn(1))
  })
}

/** The detail of a `forbidden` problem. Only the owner of the key gets it. */
function missingScopeDetail(needed: readonly Scope[], scopes: readonly Scope[]): string {
  const existing = scopes.length === 0 ? 'no scope' : `the scope "${scopes.join('", "')}"`
  return `The request needs the scope "${needed.join('" or "')}". The API key has ${existing}.`
}

/** One response for every kind of invalid key: the kind would help only an attacker who guesses keys. */
function unauthorized(): HttpProblem<CommonProblemCode> {
  return problem('unauthorized', undefined, { headers: { 'www-authenticate': 'Bearer' } })
}

const problem = (
  code: CommonProblemCode,
  detail: string | undefined,
  extra?: ProblemExtra,
): HttpProblem<CommonProblemCode> => new HttpProblem(commonProblems, code, detail, extra)

const retryIn = (seconds: number): ProblemExtra => ({ headers: { 'retry-after': String(seconds) } })
