import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { hashFields, RegistryError } from './registry-store.ts'

/**
 * An API key is `slk_`, 32 random bytes in base62 (43 digits), and the CRC-32 of everything before it in base62 (6 digits; the
 * first is at most 4). The checksum rejects mistyped keys without a lookup, and lets secret scanners distinguish a key from other
 * strings. The expression is documented for secret scanners: keys of another form need another prefix.
 */
export const API_KEY = /slk_[0-9A-Za-z]{43}[0-4][0-9A-Za-z]{5}/
const WHOLE_KEY = new RegExp(`^${API_KEY.source}$`)
const CHECKSUM_DIGITS = 6
const SECRET_BYTES = 32
const SECRET_DIGITS = 43
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** @param secret 32 bytes, random by default */
export function generateApiKey(secret: Uint8Array = randomBytes(SECRET_BYTES)): string {
  if (secret.length !== SECRET_BYTES) throw new RangeError(`a secret has ${SECRET_BYTES} bytes`)
  const body = `slk_${base62(BigInt(`0x${Buffer.from(secret).toString('hex')}`), SECRET_DIGITS)}`
  return body + checksum(body)
}

/** Whether a string has the form of a key and the right checksum. */
export function isWellFormedApiKey(value: string): boolean {
  return WHOLE_KEY.test(value) && checksum(value.slice(0, -CHECKSUM_DIGITS)) === value.slice(-CHECKSUM_DIGITS)
}

/** SHA-256 in hexadecimal: the only form of a key that is stored. A key has 256 random bits, so a fast hash is enough. */
export function hashApiKey(key: string): string {
  return hash('sha256', key, 'hex')
}

const checksum = (body: string): string => base62(BigInt(crc32(body)), CHECKSUM_DIGITS)

function base62(value: bigint, digits: number): string {
  let result = ''
  for (let rest = value; rest > 0n; rest /= 62n) result = DIGITS.charAt(Number(rest % 62n)) + result
  return result.padStart(digits, '0')
}

/** `admin` concerns the whole installation, whatever the project of the key is. */
export type Scope = 'ingest' | 'read' | 'admin'
export const scopeNames: readonly Scope[] = ['ingest', 'read', 'admin']

/** A name is one cell of a table on a terminal. */
const NAME_CHARACTERS_MAX = 200

/** The stored record of an API key. Times are ISO 8601 in UTC with milliseconds, so they sort as strings. */
export interface ApiKeyRecord {
  /** Identifies the key to operators. It reveals nothing about the secret. */
  readonly id: string
  readonly projectId: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly createdAt: string
  readonly expiresAt: string | undefined
  readonly revokedAt: string | undefined
  /** The id of the key that replaced this one in a rotation. */
  readonly replacedBy?: string | undefined
  /** When the project was deleted. If it exists, it was imported from a backup without this key, which is no longer valid. */
  readonly deletedAt?: string | undefined
  /** When the key last authenticated a request. It lags by some minutes. */
  readonly lastUsedAt?: string | undefined
}

/** The record of a key of a project in a backup. The key itself is stored nowhere. */
export interface KeyBackup extends Omit<ApiKeyRecord, 'projectId' | 'deletedAt'> {
  /** The SHA-256 of the key, in hexadecimal digits. */
  readonly hash: string
}

/** A revoked key stays revoked after its expiry. So does a key of a deleted project. */
export function keyState({ revokedAt, deletedAt, expiresAt }: ApiKeyRecord, nowMs: number) {
  if (revokedAt !== undefined || deletedAt !== undefined) return 'revoked'
  return expiresAt !== undefined && Date.parse(expiresAt) <= nowMs ? 'expired' : 'active'
}

/** Makes the record of a key. Only the record and the hash are stored. @throws RegistryError as `requireKey` */
export function createKey(
  fields: Pick<ApiKeyRecord, 'projectId' | 'name' | 'scopes' | 'expiresAt'>,
  nowMs: number,
  key = generateApiKey(),
): { readonly key: string; readonly keyHash: string; readonly record: ApiKeyRecord } {
  requireKey(fields)
  const keyHash = hashApiKey(key)
  const createdAt = new Date(nowMs).toISOString()
  return { key, keyHash, record: { id: keyIdOf(keyHash), ...fields, createdAt, revokedAt: undefined } }
}

export const keyIdOf = (keyHash: string): string => `key_${keyHash.slice(0, 16)}`

export function requireKey({ name, scopes }: Pick<ApiKeyRecord, 'name' | 'scopes'>, place = ''): void {
  if (name.length > NAME_CHARACTERS_MAX)
    throw new RegistryError(`${place}a key's name has at most ${NAME_CHARACTERS_MAX} characters`)
  if (scopes.length === 0) throw new RegistryError(`${place}a key needs at least one scope`)
}

export function keyToHash({ scopes, ...record }: ApiKeyRecord): string[] {
  return hashFields({ ...record, scopes: scopes.join(' ') })
}

/** @param stored a Redis hash; empty when there is no such key */
export function keyFromHash(stored: Readonly<Record<string, string>>): ApiKeyRecord | undefined {
  const { id, projectId, scopes = '', ...fields } = stored
  if (id === undefined || projectId === undefined) return undefined
  const known = scopes.split(' ').flatMap((each) => scopeNames.find((scope) => scope === each) ?? [])
  const absent = { name: '', createdAt: '', expiresAt: undefined, revokedAt: undefined }
  return { ...absent, ...fields, id, projectId, scopes: known }
}
