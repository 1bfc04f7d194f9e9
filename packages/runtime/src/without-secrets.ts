/** A message is a hint. Longer ones quote what was sent. */
const LENGTH_MAX = 200

/**
 * A message of an error as operators may see it. Redis quotes the arguments of an unknown command, and `HELLO` has the password. A URL
 * may have credentials.
 */
export function withoutSecrets(message: string): string {
  return message
    .replace(/,? with args beginning with:.*/su, '')
    .replaceAll(/\/\/[^/@\s]*@/gu, '//')
    .slice(0, LENGTH_MAX)
}
