import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * An API key is `slk_`, 32 random bytes in base62 (43 digits), and the CRC-32 of everything before it in base62 (6 digits; the
 * first is at most 4). The checksum rejects mistyped keys without a lookup, and lets secret scanners distinguish a key from other
 * text. The expression is documented for secret scanners: keys of another form need another prefix.
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

/** Whether a text has the form of a key and the right checksum. */
export function isWellFormedApiKey(text: string): boolean {
  return WHOLE_KEY.test(text) && checksum(text.slice(0, -CHECKSUM_DIGITS)) === text.slice(-CHECKSUM_DIGITS)
}

/** SHA-256 in hexadecimal: the only form of a key that is stored. A key has 256 random bits, so a fast hash is enough. */
export function hashApiKey(key: string): string {
  return hash('sha256', key, 'hex')
}

function checksum(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_DIGITS)
}

function base62(value: bigint, digits: number): string {
  let text = ''
  for (let rest = value; rest > 0n; rest /= 62n) text = DIGITS.charAt(Number(rest % 62n)) + text
  return text.padStart(digits, '0')
}
