/**
 * The address of the logs resource.
 *
 * @param url the address of the API, with or without `/v1` or `/v1/logs` at its end
 * @throws TypeError
 */
export function logsAddress(url: string): string {
  if (!URL.canParse(url)) throw new TypeError('`url` must be an address such as https://logs.example.com')
  const { protocol, username, password, origin, pathname, search } = new URL(url)
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new TypeError('`url` must start with http:// or https://')
  // `fetch` rejects such addresses. The address is not part of the message: it has a password.
  if (username !== '' || password !== '') throw new TypeError('`url` must not contain a user or a password')
  const path = pathname.replace(/\/+$/, '').replace(/\/v1(\/logs)?$/, '')
  return `${origin}${path}/v1/logs${search}`
}
