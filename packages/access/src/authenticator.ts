import { hashApiKey, isWellFormedApiKey, type Project, type Scope } from '@sluice/projects'
import { LRUCache } from 'lru-cache'
import {
  type Credential,
  credentialLimits,
  type CredentialSource,
  type FindKey,
  keyLookups,
  type KnownCredential,
} from './credentials.ts'
import { attemptLimits, FailedAttempts } from './failed-attempts.ts'
import type { KeyUsage } from './key-usage.ts'
import { type CommonProblemCode, commonProblems, HttpProblem, type ProblemExtra } from './problems.ts'

const SCHEME = /^bearer +(\S+)$/i

export interface AuthenticatorOptions {
  /** What keys must allow, unless a call says otherwise. */
  readonly scope: Scope
  /** Records each key that a request is authenticated with. */
  readonly usage: Pick<KeyUsage, 'recordUse'>
  /** The clock of all API processes: keys expire by it. It may throw ClockError. */
  readonly wallMs: () => number
  /** Durations are measured by it. */
  readonly monotonicMs: () => number
}

type Identified = (project: Project, scopes: readonly Scope[]) => void

interface Known {
  readonly credential: KnownCredential
  /** Until when it is trusted, on the monotonic clock. Later, the key is still remembered as a valid one. */
  readonly trustedUntilMs: number
}

/**
 * Maps the API key of a request to its project. It caches the results of lookups, so that a cached key costs no round trip.
 *
 * A key is unseen → being looked up → known or unknown. Known and unknown keys are cached separately, so that no number of
 * guesses evicts a key that exists. A known key whose trust has expired is looked up even while unseen keys are rejected.
 */
export class Authenticator {
  readonly #findKey: FindKey
  readonly #projects: CredentialSource['projects']
  readonly #known = new LRUCache<string, Known>({ max: credentialLimits.knownMax })
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
   * @throws Problem `unauthorized`, `forbidden`, `project_not_found`, `too_many_failed_attempts`; `overloaded` when too many
   *   unknown keys arrive from all addresses together; `queue_unavailable` when Redis is unavailable
   * @throws ClockError if the key is valid and the clock is not known
   */
  async authenticate(
    header: string | undefined,
    client: { readonly ip: string; readonly socket: object },
    identified?: Identified,
  ): Promise<Project> {
    return this.authenticateHash(this.hashOf(header, client.socket), client, identified)
  }

  /**
   * As `authenticate`, for the hash of a key: of a session.
   *
   * @param scopes of which the key must have one
   */
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

  /** The cached result, if it is still trusted. */
  #peek(keyHash: string): Credential | undefined {
    const nowMs = this.#options.monotonicMs()
    const known = this.#known.get(keyHash)
    if (known !== undefined) return known.trustedUntilMs > nowMs ? known.credential : undefined
    return (this.#unknownUntilMs.get(keyHash) ?? 0) > nowMs ? 'unknown' : undefined
  }

  async #lookUp(keyHash: string, address: string): Promise<Credential> {
    const inFlight = this.#lookups.get(keyHash)
    if (inFlight !== undefined) return orUnavailable(inFlight)
    const nowMs = this.#options.monotonicMs()
    const familiar = this.#known.peek(keyHash)?.credential
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
    const lookup = this.#find(keyHash)
      .then((credential) => {
        this.#keep(keyHash, credential, startedMs)
        return credential
      })
      .finally(() => this.#lookups.delete(keyHash))
    this.#lookups.set(keyHash, lookup)
    return lookup
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

function orUnavailable(lookup: Promise<Credential>): Promise<Credential> {
  return lookup.catch(() => {
    throw problem('queue_unavailable', 'The API key cannot be checked at present. Retry.', retryIn(1))
  })
}

const quoted = (names: readonly Scope[]): string[] => names.map((each) => `"${each}"`)

/** The detail of a `forbidden` problem. Only the owner of the key gets it. */
function missingScopeDetail(needed: readonly Scope[], scopes: readonly Scope[]): string {
  const existing = quoted(scopes).join(', ')
  return `The request needs the scope ${quoted(needed).join(' or ')}. The API key has ${existing === '' ? 'no scope' : `the scope ${existing}`}.`
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
