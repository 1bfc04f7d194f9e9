import type { RedisConnection } from '@sluice/runtime'
import { hash, randomBytes } from 'node:crypto'
import { registryNames } from './registry-store.ts'

export const sessionLimits = {
  /** A working day. The key of the session may be revoked before. */
  sessionMs: 43_200_000,
  /** From the command that prints a link to the browser that opens it. */
  linkMs: 120_000,
} as const

type Kind = 'session' | 'link'
/** 256 bits in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/

/**
 * Sessions of browsers in Redis. A session stands for a key, whose hash it has: it allows what the key allows, for as long as the key is
 * valid. Redis has only the hashes of tokens, so nobody can sign in with what is read from it.
 */
export class Sessions {
  readonly #redis: Pick<RedisConnection, 'set' | 'get' | 'getdel' | 'del'>
  readonly #names: ReturnType<typeof registryNames>

  /** @param prefix `installationNames(…).registryPrefix` */
  constructor(redis: Pick<RedisConnection, 'set' | 'get' | 'getdel' | 'del'>, prefix: string) {
    this.#redis = redis
    this.#names = registryNames(prefix)
  }

  /** @returns the token of a new session */
  begin(keyHash: string): Promise<string> {
    return this.#put('session', keyHash, sessionLimits.sessionMs)
  }

  /** The hash of the session's key. */
  find(token: string): Promise<string | undefined> {
    return this.#read('get', 'session', token)
  }

  async end(token: string): Promise<void> {
    await this.#redis.del(this.#name('session', token))
  }

  /** @returns a token with which a session can be begun once, within two minutes */
  createLink(keyHash: string): Promise<string> {
    return this.#put('link', keyHash, sessionLimits.linkMs)
  }

  /** The hash of the link's key. Undefined if the link is used or has expired. */
  useLink(token: string): Promise<string | undefined> {
    return this.#read('getdel', 'link', token)
  }

  async #read(command: 'get' | 'getdel', kind: Kind, token: string): Promise<string | undefined> {
    return (TOKEN.test(token) && (await this.#redis[command](this.#name(kind, token)))) || undefined
  }

  async #put(kind: Kind, keyHash: string, ms: number): Promise<string> {
    const token = randomBytes(32).toString('base64url')
    await this.#redis.set(this.#name(kind, token), keyHash, 'PX', ms)
    return token
  }

  #name(kind: Kind, token: string): string {
    return this.#names.session(kind, hash('sha256', token, 'hex'))
  }
}
