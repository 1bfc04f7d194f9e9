import { generateApiKey, hashApiKey } from './api-key.ts'

/** What a key may be allowed to do. */
export type Scope = 'ingest' | 'read'

/** What is kept of an API key. Times are ISO 8601 in UTC with milliseconds, so they sort as texts. */
export interface ApiKeyRecord {
  /** Names the key for people; tells nothing of its secret. */
  readonly id: string
  readonly projectId: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly createdAt: string
  readonly expiresAt: string | undefined
  readonly revokedAt: string | undefined
  /** The id of the key that it was rotated to. */
  readonly replacedBy?: string | undefined
  /** When a request last passed with it, some minutes behind. */
  readonly lastUsedAt?: string | undefined
}

export type KeyState = 'active' | 'expired' | 'revoked'

/** Whether a key is good now. One that was revoked stays revoked, whenever it would have expired. */
export function keyState({ revokedAt, expiresAt }: ApiKeyRecord, nowMs: number): KeyState {
  if (revokedAt !== undefined) return 'revoked'
  return expiresAt !== undefined && Date.parse(expiresAt) <= nowMs ? 'expired' : 'active'
}

/** A key that was just made; nothing but its record and its hash is kept. */
export interface MadeKey {
  readonly key: string
  readonly keyHash: string
  readonly record: ApiKeyRecord
}

export function makeKey(
  fields: Pick<ApiKeyRecord, 'projectId' | 'name' | 'scopes' | 'expiresAt'>,
  nowMs: number,
): MadeKey {
  const key = generateApiKey()
  const keyHash = hashApiKey(key)
  const id = `key_${keyHash.slice(0, 16)}`
  const createdAt = new Date(nowMs).toISOString()
  return { key, keyHash, record: { id, ...fields, createdAt, revokedAt: undefined } }
}

/** The record as a hash of Redis: absent is what is undefined. */
export function keyToHash({ scopes, ...record }: ApiKeyRecord): Record<string, string> {
  const fields = Object.entries({ ...record, scopes: scopes.join(' ') })
  return Object.fromEntries(fields.filter((field): field is [string, string] => field[1] !== undefined))
}

/** @param fields of a hash of Redis; none where there is no such key */
export function keyFromHash(fields: Record<string, string>): ApiKeyRecord | undefined {
  const { id, projectId, name = '', createdAt = '', expiresAt, revokedAt, replacedBy, lastUsedAt } = fields
  if (id === undefined || projectId === undefined) return undefined
  const scopes = (fields['scopes'] ?? '').split(' ').filter(isScope)
  return {
    id,
    projectId,
    name,
    scopes,
    createdAt,
    expiresAt,
    revokedAt,
    ...(replacedBy === undefined ? {} : { replacedBy }),
    ...(lastUsedAt === undefined ? {} : { lastUsedAt }),
  }
}

function isScope(text: string): text is Scope {
  return text === 'ingest' || text === 'read'
}
