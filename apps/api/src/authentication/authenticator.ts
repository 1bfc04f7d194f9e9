import { hashApiKey, isWellFormedApiKey, type Project, type Scope } from '@sluice/projects'
import { Problem, retryAfter } from '../problems.ts'
import {
  type Credential,
  credentialLimits,
  type CredentialSource,
  Credentials,
  type KnownCredential,
} from './credentials.ts'
import { attemptLimits, FailedAttempts } from './failed-attempts.ts'
import type { KeyUsage } from './key-usage.ts'

const SCHEME = /^bearer +(\S+)$/i

export interface AuthenticatorOptions {
  /** Records each key that a request is authenticated with. */
  readonly usage: Pick<KeyUsage, 'recordUse'>
  /** The clock of all API processes: keys expire by it. It may throw ClockError. */
  readonly wallMs: () => number
  /** Durations are measured by it. */
  readonly monotonicMs: () => number
}

/** Maps the API key of a request to its project. */
export class Authenticator {
  readonly #credentials: Credentials
  readonly #failedAttempts = new FailedAttempts()
  readonly #options: AuthenticatorOptions
  /** Requests whose API key was cached, and requests whose key was not. */
  cacheHits = 0
  cacheMisses = 0
  /** Valid keys that Redis had, and does not have any more. */
  keysLost = 0

  constructor(registry: CredentialSource, options: AuthenticatorOptions) {
    this.#credentials = new Credentials(registry)
    this.#options = options
  }

  /**
   * The project that the key of an Authorization header may ingest into.
   *
   * @param client the sender of the request; its address is read only if the key must be looked up
   * @param identified called with the project of a valid key, before the scope of the key and the state of the project are checked
   * @throws Problem `unauthorized`, `forbidden`, `project_not_found`, `too_many_failed_attempts`; `overloaded` when too many
   *   unknown keys arrive from all addresses together; `queue_unavailable` when Redis is unavailable
   * @throws ClockError if the key is valid and the clock is not known
   */
  async authenticate(
    header: string | undefined,
    client: { readonly ip: string },
    identified?: (project: Project) => void,
  ): Promise<Project> {
    const key = header === undefined ? undefined : SCHEME.exec(header)?.[1]
    if (key === undefined || !isWellFormedApiKey(key)) throw unauthorized()
    const keyHash = hashApiKey(key)
    const cached = this.#credentials.peek(keyHash, this.#options.monotonicMs())
    if (cached === undefined) this.cacheMisses += 1
    else this.cacheHits += 1
    const credential = cached ?? (await this.#lookUp(keyHash, client.ip))
    if (credential === 'unknown' || !this.#isValid(credential)) throw unauthorized()
    const { record, project } = credential
    if (project !== undefined) identified?.(project)
    if (!record.scopes.includes('ingest')) throw new Problem('forbidden', missingScopeDetail(record.scopes))
    if (project?.enabled !== true)
      throw new Problem('project_not_found', `The project ${record.projectId} is deleted or disabled.`)
    this.#options.usage.recordUse(keyHash, this.#options.wallMs())
    return project
  }

  /** Stops trusting what is cached of a changed key (given its hash) or of the keys of a changed project (given its id). */
  invalidate(change: string): void {
    this.#credentials.invalidate(change)
  }

  #isValid({ record: { deletedAt, expiresAt, revokedAt }, project }: KnownCredential): boolean {
    if (revokedAt !== undefined || (project !== undefined && deletedAt !== undefined)) return false
    return expiresAt === undefined || Date.parse(expiresAt) > this.#options.wallMs()
  }

  async #lookUp(keyHash: string, address: string): Promise<Credential> {
    const credentials = this.#credentials
    const inFlight = credentials.lookupInFlight(keyHash)
    if (inFlight !== undefined) return orUnavailable(inFlight)
    const nowMs = this.#options.monotonicMs()
    const familiar = credentials.familiar(keyHash)
    // Keys that were valid before are always looked up, however many keys clients guess.
    if (familiar !== undefined) {
      const credential = await orUnavailable(credentials.lookUp(keyHash, nowMs))
      // All others keep their records.
      if (credential === 'unknown' && familiar.project !== undefined && this.#isValid(familiar))
        this.keysLost += 1
      return credential
    }
    this.#admit(address, nowMs)
    const credential = await orUnavailable(credentials.lookUp(keyHash, nowMs))
    const waitMs = credential === 'unknown' ? this.#failedAttempts.record(address, nowMs) : 0
    if (waitMs > 0) throw retryAfter('too_many_failed_attempts', Math.ceil(waitMs / 1_000))
    return credential
  }

  /**
   * Throws if a key that this process has never seen must not be looked up now. A key from an address that guesses is looked up as
   * long as there is room for it: it may be the valid key of another client with the same address.
   */
  #admit(address: string, nowMs: number): void {
    const share = this.#failedAttempts.hasAttempts(address, nowMs) ? 1 : attemptLimits.spareShare
    const isBusy = this.#credentials.lookupsInFlight >= credentialLimits.lookupsMax * share
    if (isBusy || !this.#failedAttempts.hasTotal(share, nowMs)) {
      throw retryAfter('overloaded', 1, 'Too many API keys are being checked. Retry.')
    }
  }
}

function orUnavailable(lookup: Promise<Credential>): Promise<Credential> {
  return lookup.catch(() => {
    throw retryAfter('queue_unavailable', 1, 'The API key cannot be checked at present. Retry.')
  })
}

/** The detail of a `forbidden` problem. Only the owner of the key gets it. */
function missingScopeDetail(scopes: readonly Scope[]): string {
  const existing = scopes.map((scope) => `"${scope}"`).join(', ')
  return `The request needs the scope "ingest". The API key has ${existing === '' ? 'no scope' : `the scope ${existing}`}.`
}

/** One response for every kind of invalid key: the kind would help only an attacker who guesses keys. */
function unauthorized(): Problem {
  return new Problem('unauthorized', undefined, { headers: { 'www-authenticate': 'Bearer' } })
}
