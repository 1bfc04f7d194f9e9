/** A valid entry of 30 bytes. */
export const entryText = '{"level":"info","message":"m"}'

/** The head of a request that posts JSON with this key; `lines` are added to its headers. */
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

/** A complete request that posts JSON with this key. */
export function postText(key: string, body: string, lines: readonly string[] = []): string {
  return postHead(key, [`Content-Length: ${Buffer.byteLength(body)}`, ...lines]) + body
}

export function chunkText(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
}

export interface LogsResponse {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: unknown
}

const RESPONSE_DEADLINE_MS = 10_000

/** Posts to `/v1/logs` with `fetch`. @param body a string is sent unchanged, any other value as JSON */
export async function postLogs(
  { apiUrl, apiKey }: { readonly apiUrl: string; readonly apiKey: string },
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<LogsResponse> {
  const response = await fetch(`${apiUrl}/v1/logs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal: AbortSignal.timeout(RESPONSE_DEADLINE_MS),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as unknown }
}
