import type { HttpResponse } from '@sluice/harness'
import type { ProtocolName } from './protocol-bodies.ts'

/** What an answer in the form of a protocol says. */
export interface ProtocolVerdict {
  readonly fault: string | undefined
  /** How many rows it reports as stored, as far as it tells. */
  readonly rows: number
}

type Document = Readonly<Record<string, unknown>>

const statuses: Readonly<Record<ProtocolName, ReadonlySet<number>>> = {
  elasticsearch: new Set([200, 400, 401, 403, 404, 405, 413, 415, 422, 429]),
  loki: new Set([204, 400, 401, 403, 404, 405, 413, 415, 422, 429]),
  // HEC has no 429: guessed keys and rate limits are 503.
  splunk: new Set([200, 400, 401, 403, 405, 413, 415, 422, 503]),
  datadog: new Set([202, 400, 401, 403, 404, 405, 413, 415, 422, 429]),
}

export function judgeProtocol(
  protocol: ProtocolName,
  { status, body, headers }: HttpResponse,
  isHead: boolean,
): ProtocolVerdict {
  // A transfer encoding that the API does not have.
  if (status !== 501 && !statuses[protocol].has(status))
    return { fault: `${protocol} answers with the status ${status}`, rows: 0 }
  if (isHead) return { fault: undefined, rows: 0 }
  if (protocol === 'loki') return { fault: lokiFault(status, body, headers), rows: 0 }
  const document = parse(body)
  if (document === undefined) return { fault: `${protocol} answers without a JSON object`, rows: 0 }
  if (protocol === 'splunk')
    return { fault: Number.isInteger(document['code']) ? undefined : 'an answer without a code', rows: 0 }
  if (protocol === 'datadog') {
    const isValid = status === 202 || Array.isArray(document['errors'])
    return { fault: isValid ? undefined : 'a rejection without errors', rows: 0 }
  }
  if (status !== 200) {
    const isValid = document['status'] === status && typeof document['error'] === 'object'
    return { fault: isValid ? undefined : 'a rejection without its status or error', rows: 0 }
  }
  return judgeBulk(document, headers)
}

function judgeBulk({ errors, items = [] }: Document, headers: HttpResponse['headers']): ProtocolVerdict {
  if (!Array.isArray(items)) return { fault: 'items that are not an array', rows: 0 }
  const itemStatuses = (items as readonly Document[]).map(
    (item) => (Object.values(item)[0] as Document | undefined)?.['status'],
  )
  const stored = itemStatuses.filter((status) => status === 201).length
  const rejected = itemStatuses.filter((status) => status === 400).length
  if (stored + rejected !== items.length) return { fault: 'an item with another status', rows: 0 }
  if (errors !== rejected > 0) return { fault: 'errors differ from the items', rows: 0 }
  return { fault: undefined, rows: headers['idempotency-replayed'] === undefined ? stored : 0 }
}

function lokiFault(status: number, body: string, headers: HttpResponse['headers']): string | undefined {
  if (status === 204) return body === '' ? undefined : 'a 204 with a body'
  return (headers['content-type'] ?? '').startsWith('text/plain') && body.endsWith('\n')
    ? undefined
    : 'a rejection that is not text'
}

function parse(body: string): Document | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Document)
      : undefined
  } catch {
    return undefined
  }
}
