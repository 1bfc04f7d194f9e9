import {
  hashApiKey,
  isWellFormedApiKey,
  type ApiKeyRecord,
  type Project,
  type Registry,
} from '@sluice/projects'
import { LRUCache } from 'lru-cache'
import { Problem } from '../problems.ts'

/** What a key, known or not, is taken for: cached, so that a warm key costs no round trip. */
type Credential = { readonly record: ApiKeyRecord; readonly project: Project | undefined } | 'unknown'

/**
 * How long a cached credential is trusted. Changes are published and take effect at once; this bounds it when the news
 * is lost. With the look-up's own time, at most two commands of 1.8 s of which the first reads the key, it must stay below
 * the five seconds that a revocation may take.
 */
const CACHE_TTL_MS = 3_000
/** 10,000 of some 500 bytes: 5 MB. More keys than that in four seconds cost a look-up each. */
const CACHE_ENTRIES_MAX = 10_000

const SCHEME = /^bearer +(\S+)$/i

/** Tells which project a request's key belongs to. */
export class Authenticator {
  readonly #cache: LRUCache<string, Credential>
  readonly #now: () => number

  constructor(registry: Pick<Registry, 'findKey' | 'findProject'>, now: () => number = Date.now) {
    this.#now = now
    this.#cache = new LRUCache<string, Credential>({
      max: CACHE_ENTRIES_MAX,
      ttl: CACHE_TTL_MS,
      // A change during a look-up lets go of its result, but does not fail those who wait for it.
      ignoreFetchAbort: true,
      // Concurrent requests with one cold key share one look-up.
      fetchMethod: async (keyHash): Promise<Credential> => {
        const record = await registry.findKey(keyHash)
        return record === undefined
          ? 'unknown'
          : { record, project: await registry.findProject(record.projectId) }
      },
    })
  }

  /**
   * The project that an Authorization header's key may ingest into.
   *
   * @throws Problem `unauthorized`, `forbidden`, `project_not_found`, or `queue_unavailable` when Redis cannot be asked
   */
  async authenticate(header: string | undefined): Promise<Project> {
    const key = header === undefined ? undefined : SCHEME.exec(header)?.[1]
    if (key === undefined || !isWellFormedApiKey(key)) throw unauthorized()
    const keyHash = hashApiKey(key)
    const credential = this.#cache.get(keyHash) ?? (await this.#lookUp(keyHash))
    if (credential === 'unknown') throw unauthorized()
    const { record, project } = credential
    if (record.revokedAt !== undefined || this.#isPast(record.expiresAt)) throw unauthorized()
    if (!record.scopes.includes('ingest')) throw new Problem('forbidden', 'The key needs the scope "ingest".')
    if (project === undefined || !project.enabled) {
      throw new Problem('project_not_found', `The project ${record.projectId} is gone or disabled.`)
    }
    return project
  }

  /** Lets go of what is cached: of one key by its hash, or of everything for any other change. */
  invalidate(change: string): void {
    if (!this.#cache.delete(change)) this.#cache.clear()
  }

  async #lookUp(keyHash: string): Promise<Credential> {
    try {
      return (await this.#cache.fetch(keyHash)) ?? 'unknown'
    } catch {
      throw new Problem('queue_unavailable', 'The key cannot be checked right now. Try again.', {
        headers: { 'retry-after': '1' },
      })
    }
  }

  #isPast(time: string | undefined): boolean {
    return time !== undefined && Date.parse(time) <= this.#now()
  }
}

/** One answer for every kind of bad key: which kind it is would help only those who guess. */
function unauthorized(): Problem {
  return new Problem('unauthorized', 'Send the header "Authorization: Bearer <API_KEY>" with a valid key.', {
    headers: { 'www-authenticate': 'Bearer' },
  })
}
