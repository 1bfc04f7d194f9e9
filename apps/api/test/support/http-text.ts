/** A good entry, 30 bytes long. */
export const entry = '{"level":"info","message":"m"}'

/** The head of a post of JSON with this key, with more lines. */
export function postHead(key: string, lines: readonly string[]): string {
  return [
    'POST /v1/logs HTTP/1.1',
    'Host: localhost',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    ...lines,
    '\r\n',
  ].join('\r\n')
}

/** A whole post of JSON with this key. */
export function post(key: string, body: string, lines: readonly string[] = []): string {
  return postHead(key, [`Content-Length: ${Buffer.byteLength(body)}`, ...lines]) + body
}

/** One chunk of a body in chunks. */
export const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
