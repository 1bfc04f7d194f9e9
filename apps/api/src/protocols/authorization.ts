/**
 * Makes a bearer token of an Authorization header with another scheme. A key has neither a colon nor an equals sign, so it is never
 * mistaken for Base64 of a name and a key.
 *
 * @param header the Authorization header
 * @param schemes the schemes whose credentials are the key itself, in lower case
 * @param encodedSchemes the schemes whose credentials are Base64 of `name:key` or of the key, in lower case
 * @returns a header for `Authenticator.authenticate`, which rejects a token that is not a key
 */
export function asBearer(
  header: string | undefined,
  schemes: readonly string[],
  encodedSchemes: readonly string[],
): string | undefined {
  const [, scheme = '', credentials = ''] = /^([A-Za-z]+) +(\S+)$/.exec(header ?? '') ?? []
  const name = scheme.toLowerCase()
  if (schemes.includes(name) && credentials.startsWith(KEY_PREFIX)) return `Bearer ${credentials}`
  if (!encodedSchemes.includes(name)) return header
  const decoded = Buffer.from(credentials, 'base64').toString('latin1')
  return `Bearer ${decoded.slice(decoded.lastIndexOf(':') + 1)}`
}

const KEY_PREFIX = 'slk_'
