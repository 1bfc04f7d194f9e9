/** A complete response. */
export interface HttpResponse {
  readonly status: number
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The body, if it is binary. */
  readonly bytes?: Buffer
}

/** The bytes are not an HTTP response. */
export class MalformedResponseError extends Error {
  override name = 'MalformedResponseError'
}

/** No response of the API has a longer head: a longer one has lost its end. */
const HEAD_BYTES_MAX = 1_000_000
const STATUS_LINE = /^HTTP\/1\.1 (\d{3}) [ -~]*$/
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t -~\x80-\xff]*)$/

/**
 * Parses the first response, as strictly as HTTP allows. Undefined while it is incomplete.
 *
 * @param isHead whether it is to a HEAD request, and therefore has no body
 */
export function parseResponse(
  bytes: Buffer,
  isHead: boolean,
): { response: HttpResponse; bytes: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) {
    if (bytes.length > HEAD_BYTES_MAX) throw new MalformedResponseError('the head does not end')
    return undefined
  }
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const status = Number(STATUS_LINE.exec(statusLine)?.[1])
  if (!(status >= 100))
    throw new MalformedResponseError(`not a status line: ${JSON.stringify(statusLine.slice(0, 100))}`)
  const headers = Object.fromEntries(lines.map(parseHeader))
  const bodyStart = headEnd + 4
  const bodyEnd = bodyStart + bodyBytes(status, headers, isHead)
  if (bytes.length < bodyEnd) return undefined
  const body = Buffer.from(bytes.subarray(bodyStart, bodyEnd))
  return { response: { status, headers, body: body.toString(), bytes: body }, bytes: bodyEnd }
}

function parseHeader(line: string): [name: string, value: string] {
  const [, name, value] = HEADER_LINE.exec(line) ?? []
  if (name === undefined || value === undefined)
    throw new MalformedResponseError(`not a header: ${JSON.stringify(line)}`)
  return [name.toLowerCase(), value]
}

function bodyBytes(status: number, headers: HttpResponse['headers'], isHead: boolean): number {
  if (isHead || status < 200 || status === 204 || status === 304) return 0
  const length = headers['content-length'] ?? ''
  if (!/^\d{1,6}$/.test(length))
    throw new MalformedResponseError(`a ${status} with the Content-Length "${length}"`)
  return Number(length)
}
