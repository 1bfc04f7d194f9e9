import type { Authenticator } from '@sluice/access'
import {
  hashApiKey,
  isWellFormedApiKey,
  type Project,
  type Scope,
  sessionLimits,
  type Sessions,
} from '@sluice/projects'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, retryAfter } from './problems.ts'

const COOKIE = 'sluice_session'
const SESSION_COOKIE = new RegExp(`(?:^|; ?)${COOKIE}=([A-Za-z0-9_-]+)(?:;|$)`)
const SESSION_PATH = '/v1/query/session'

/** `same-origin` is the explorer itself, and `none` a user who enters an address. Other clients than browsers do not send it. */
const sitesAllowed: ReadonlySet<unknown> = new Set([undefined, 'same-origin', 'none'])

/** What the explorer is for: entries of a project, or the pipeline of the installation. */
const sessionScopes: readonly Scope[] = ['read', 'admin']

/** Refuses a change that a page of another origin asks for. */
export async function refuseForeignChange({ method, headers }: FastifyRequest): Promise<void> {
  if (method === 'GET') return
  const { origin, host } = headers
  const isForeign = origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== host)
  if (isForeign || !sitesAllowed.has(headers['sec-fetch-site'])) throw new Problem('cross_origin')
}

/** Who may read: a key in the header `Authorization`, or a session of the explorer, which stands for a key. */
export class ReadAccess {
  readonly #authenticator: Authenticator
  readonly #sessions: Sessions

  constructor(authenticator: Authenticator, sessions: Sessions) {
    this.#authenticator = authenticator
    this.#sessions = sessions
  }

  /** The project that a request may read. @throws Problems of the authenticator */
  async projectOf(request: FastifyRequest): Promise<Project> {
    return this.#authenticator.authenticateHash(await this.#keyHashOf(request), request)
  }

  /** That the request may concern the whole installation. @throws as `projectOf` */
  async requireAdmin(request: FastifyRequest): Promise<void> {
    await this.#authenticator.authenticateHash(await this.#keyHashOf(request), request, undefined, ['admin'])
  }

  /** Signs in and out. */
  addRoutes(app: FastifyInstance): void {
    app.get(SESSION_PATH, (request) =>
      this.#keyHashOf(request).then((keyHash) => this.#session(keyHash, request)),
    )
    app.post(SESSION_PATH, async (request, reply) => {
      const { key } = (request.body ?? {}) as { readonly key?: unknown }
      if (typeof key !== 'string') throw new Problem('invalid_body')
      if (!isWellFormedApiKey(key)) throw new Problem('unauthorized')
      const keyHash = hashApiKey(key)
      const session = await this.#session(keyHash, request)
      await this.#begin(keyHash, request, reply)
      return session
    })
    app.delete(SESSION_PATH, async (request, reply) => {
      const token = SESSION_COOKIE.exec(request.headers.cookie ?? '')?.[1]
      if (token !== undefined) await available(this.#sessions.end(token))
      return setCookie(request, reply, '', 0).code(204).send()
    })
    app.get('/open', async (request, reply) => {
      const { token } = request.query as { readonly token?: unknown }
      const keyHash = typeof token === 'string' ? await available(this.#sessions.useLink(token)) : undefined
      if (keyHash !== undefined) {
        // The key may have been revoked since.
        await this.#session(keyHash, request)
        await this.#begin(keyHash, request, reply)
      }
      // Without a session, the explorer asks for a key.
      return reply.header('cache-control', 'no-store').redirect('/', 303)
    })
  }

  /** @throws Problems of the authenticator */
  async #keyHashOf({ headers, socket }: FastifyRequest): Promise<string> {
    const token = SESSION_COOKIE.exec(headers.cookie ?? '')?.[1]
    if (headers.authorization !== undefined || token === undefined)
      return this.#authenticator.hashOf(headers.authorization, socket)
    const keyHash = await available(this.#sessions.find(token))
    if (keyHash === undefined) throw new Problem('unauthorized', 'The session has ended. Sign in again.')
    return keyHash
  }

  /** @throws Problems of the authenticator: `forbidden`, if the key has none of the scopes */
  async #session(keyHash: string, { ip }: FastifyRequest) {
    let held: readonly Scope[] = []
    const keep = (_project: Project, scopes: readonly Scope[]): void => void (held = scopes)
    const { id } = await this.#authenticator.authenticateHash(keyHash, { ip }, keep, sessionScopes)
    return { project_id: id, scopes: held }
  }

  async #begin(keyHash: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const token = await available(this.#sessions.begin(keyHash))
    setCookie(request, reply, token, sessionLimits.sessionMs / 1_000)
  }
}

function setCookie(
  { protocol }: FastifyRequest,
  reply: FastifyReply,
  token: string,
  seconds: number,
): FastifyReply {
  const secure = protocol === 'https' ? '; Secure' : ''
  return reply.header(
    'set-cookie',
    `${COOKIE}=${token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure}`,
  )
}

/** @throws Problem `queue_unavailable` if Redis does not reply */
export function available<T>(reply: Promise<T>): Promise<T> {
  return reply.catch(() => {
    throw retryAfter('queue_unavailable')
  })
}
