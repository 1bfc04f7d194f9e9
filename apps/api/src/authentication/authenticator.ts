import { hashApiKey, isWellFormedApiKey, type Project, type Registry } from '@sluice/projects'
import { Problem } from '../problems.ts'
import { type Credential, Credentials } from './credentials.ts'
import { FailedAttempts } from './failed-attempts.ts'
import type { KeyUsage } from './key-usage.ts'

const SCHEME = /^bearer +(\S+)$/i

/** Tells which project a request's key belongs to. */
export class Authenticator {
  readonly #credentials: Credentials
  readonly #failedAttempts = new FailedAttempts()
  readonly #usage: Pick<KeyUsage, 'note'> | undefined
  readonly #now: () => number
  readonly #monotonicMs: () => number

  constructor(
    registry: Pick<Registry, 'findKey' | 'findProject'>,
    options: {
      /** Is told of each key that a request passes with. */
      usage?: Pick<KeyUsage, 'note'>
      /** The time of day, ms: what expires is compared with it. */
      now?: () => number
      /** A clock that nobody sets, ms: what is measured here is measured by it. */
      monotonicMs?: () => number
    } = {},
  ) {
    this.#credentials = new Credentials(registry)
    this.#usage = options.usage
    this.#now = options.now ?? Date.now
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now())
  }

  /**
   * The project that an Authorization header's key may ingest into.
   *
   * @param client where the request comes from; its address is asked for only if the key must be looked up
   * @throws Problem `unauthorized`, `forbidden`, `project_not_found`, `too_many_failed_attempts`; `overloaded` when too
   *   many keys are guessed from everywhere, or `queue_unavailable` when Redis cannot be asked
   */
  async authenticate(header: string | undefined, client: { readonly ip: string }): Promise<Project> {
    const key = header === undefined ? undefined : SCHEME.exec(header)?.[1]
    if (key === undefined || !isWellFormedApiKey(key)) throw unauthorized()
    const keyHash = hashApiKey(key)
    const credential =
      this.#credentials.peek(keyHash, this.#monotonicMs()) ?? (await this.#lookUp(keyHash, client.ip))
    if (credential === 'unknown') throw unauthorized()
    const { record, project } = credential
    if (record.revokedAt !== undefined || this.#isPast(record.expiresAt)) throw unauthorized()
    if (!record.scopes.includes('ingest')) throw new Problem('forbidden', 'The key needs the scope "ingest".')
    if (project === undefined || !project.enabled) {
      throw new Problem('project_not_found', `The project ${record.projectId} is gone or disabled.`)
    }
    this.#usage?.note(keyHash, this.#now())
    return project
  }

  /** Trusts no more what is cached of a key, by its hash, or of a project's keys, by its id. */
  invalidate(change: string): void {
    this.#credentials.invalidate(change)
  }

  async #lookUp(keyHash: string, address: string): Promise<Credential> {
    const credentials = this.#credentials
    const underWay = credentials.underWay(keyHash)
    if (underWay !== undefined) return orUnavailable(underWay)
    const nowMs = this.#monotonicMs()
    // Good keys go on being looked up, whoever guesses beside them.
    if (credentials.isFamiliar(keyHash)) return orUnavailable(credentials.lookUp(keyHash, nowMs))
    this.#admit(address, nowMs)
    const credential = await orUnavailable(credentials.lookUp(keyHash, nowMs))
    if (credential === 'unknown') this.#failedAttempts.note(address, nowMs)
    return credential
  }

  /** Lets a key that was never seen here be looked up, or throws why not. */
  #admit(address: string, nowMs: number): void {
    const waitMs = this.#failedAttempts.waitMs(address, nowMs)
    if (waitMs > 0) {
      throw new Problem('too_many_failed_attempts', 'Too many unknown keys came from your address. Wait.', {
        headers: { 'retry-after': String(Math.ceil(waitMs / 1_000)) },
      })
    }
    if (this.#credentials.isBusy || this.#failedAttempts.isExhausted(nowMs)) {
      throw new Problem('overloaded', 'Too many keys are being checked right now. Try again.', {
        headers: { 'retry-after': '1' },
      })
    }
  }

  #isPast(time: string | undefined): boolean {
    return time !== undefined && Date.parse(time) <= this.#now()
  }
}

function orUnavailable(lookUp: Promise<Credential>): Promise<Credential> {
  return lookUp.catch(() => {
    throw new Problem('queue_unavailable', 'The key cannot be checked right now. Try again.', {
      headers: { 'retry-after': '1' },
    })
  })
}

/** One answer for every kind of bad key: which kind it is would help only those who guess. */
function unauthorized(): Problem {
  return new Problem('unauthorized', 'Send the header "Authorization: Bearer <API_KEY>" with a valid key.', {
    headers: { 'www-authenticate': 'Bearer' },
  })
}
