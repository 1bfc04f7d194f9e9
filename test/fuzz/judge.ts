import type { HttpResponse } from '@sluice/harness'
import { problems } from '../../apps/api/src/problems.ts'
import { OTLP_PROTOBUF, rpcCode } from '../../apps/api/src/protocols/otlp/otlp.ts'
import { Described, type Document as OpenApiDocument } from '../../apps/api/test/openapi/described.ts'
import { decodeAnswer } from '../../apps/api/test/protocols/otlp/otlp-api.ts'
import type { FuzzRequest, ShipperName } from './fuzz-request.ts'

export interface Verdict {
  /** What is wrong with the response. Undefined if it is as documented. */
  readonly fault: string | undefined
  /** The status, and the code of a problem. */
  readonly label: string
  /** How many new rows it reports as accepted. A replay reports none. */
  readonly rows: number
}

type Document = Readonly<Record<string, unknown>>

export type Judge = (request: FuzzRequest, answer: HttpResponse) => Verdict

/** Checks responses against the OpenAPI document, and against what is known about their requests. */
export function judgeOf(openApi: OpenApiDocument): Judge {
  const described = new Described(openApi)
  return (request, answer) => {
    const { status, headers } = answer
    const isProblem = (headers['content-type'] ?? '').startsWith('application/problem')
    // What is not a valid request for any route gets a problem.
    if (request.shipper !== undefined && !isProblem) {
      const { fault, rows } = judgeShipper(request.shipper, answer, request.isHead)
      return { fault: idFault(request, answer) ?? fault, label: `${status} ${request.shipper}`, rows }
    }
    const document = request.isHead ? {} : parse(answer)
    const isNew = headers['idempotency-replayed'] === undefined
    const rows = isNew && status === 202 ? acceptedRows(document ?? {}) : 0
    const records = isNew && status === 200 ? storedRecords(request, document ?? {}) : 0
    return {
      fault: idFault(request, answer) ?? faultOf(described, request, answer, document),
      label: `${status} ${codeOf(document) ?? status}`,
      rows: rows + records,
    }
  }
}

function faultOf(
  described: Described,
  request: FuzzRequest,
  answer: HttpResponse,
  document: Document | undefined,
): string | undefined {
  const { status, headers } = answer
  // A response that leaves the body unread may close the connection: a rejection, or the response to a GET with a body.
  if (request.ending === 'keeps' && status === 202 && headers['connection'] === 'close')
    return 'the answer closes the connection'
  // A transfer encoding that the API does not have is the client's mistake.
  if (status >= 500 && status !== problems.unsupported_transfer_encoding.status)
    return `the status is ${status}`
  if (request.statuses?.includes(status) === false)
    return `the status is ${status}, not ${request.statuses.join(' or ')}`
  // A page of health.
  if (request.isHead || (status === 200 && document?.['status'] === 'ok')) return undefined
  if (document === undefined) return 'the body is not a JSON object'
  const { connection: _, ...others } = headers
  const [undescribed] = described.undescribed(described.post(), { ...answer, headers: others })
  if (undescribed !== undefined) return `not in the OpenAPI document: ${JSON.stringify(undescribed)}`
  if (status === 202) return acceptanceFault(request, document)
  return status === 200 ? otlpFault(request, document) : problemFault(answer, document)
}

/** The code of a problem. In a response with Protocol Buffers, the message begins with it. */
function codeOf(document: Document | undefined): string | undefined {
  const { code, message } = document ?? {}
  if (typeof code === 'string') return code
  return typeof code === 'number' && typeof message === 'string' ? message.split(':', 1)[0] : undefined
}

function isProtobuf(headers: HttpResponse['headers']): boolean {
  return headers['content-type'] === OTLP_PROTOBUF
}

function storedRecords({ records }: FuzzRequest, { partialSuccess }: Document): number {
  if (records === undefined) return 0
  const { rejectedLogRecords = '0' } = (partialSuccess ?? {}) as { rejectedLogRecords?: string }
  return records - Number(rejectedLogRecords)
}

function idFault(request: FuzzRequest, { headers }: Pick<HttpResponse, 'headers'>): string | undefined {
  const id = headers['x-request-id'] ?? ''
  if (!/^[!-~]{1,128}$/.test(id)) return `X-Request-Id is "${id}"`
  return request.requestId !== undefined && id !== request.requestId
    ? `the answer belongs to request ${id}`
    : undefined
}

function acceptanceFault({ entries }: FuzzRequest, document: Document): string | undefined {
  const { accepted, rejected, errors } = document
  if (!isCount(accepted) || !isCount(rejected)) return undefined
  if (entries !== undefined && accepted + rejected !== entries)
    return `${accepted} accepted + ${rejected} rejected is not ${entries}`
  return rejected > 0 && errors === undefined ? 'rejected entries without errors' : undefined
}

/** The code determines the status, and the rest of a problem. */
function problemFault({ status, headers }: HttpResponse, document: Document): string | undefined {
  const code = codeOf(document) ?? ''
  const known = Object.hasOwn(problems, code) ? problems[code as keyof typeof problems] : undefined
  if (known === undefined || known.status !== status) return `the code ${code} with the status ${status}`
  const expected = isProtobuf(headers)
    ? { code: rpcCode(status) }
    : { status, title: known.title, type: `urn:sluice:problem:${code}`, requestId: headers['x-request-id'] }
  const wrong = Object.entries(expected).find(([name, value]) => document[name] !== value)
  return wrong === undefined
    ? undefined
    : `${code} with the ${wrong[0]} ${JSON.stringify(document[wrong[0]])}`
}

function otlpFault(request: FuzzRequest, document: Document): string | undefined {
  if (request.ending === 'torn' || request.isCounted === false) return undefined
  if (request.records === undefined) return 'a 200 to a request that is not OTLP'
  const stored = storedRecords(request, document)
  return stored >= 0 && stored <= request.records
    ? undefined
    : `${stored} of ${request.records} records are stored`
}

function acceptedRows({ accepted, id }: Document): number {
  if (isCount(accepted)) return accepted
  return typeof id === 'string' && id !== '' ? 1 : 0
}

/** What a response in the form of a shipper's API reports. Only Elasticsearch's has the number of stored rows. */
function judgeShipper(
  shipper: ShipperName,
  answer: HttpResponse,
  isHead: boolean,
): Pick<Verdict, 'fault' | 'rows'> {
  const { status, body, headers } = answer
  const { success, others } = shippers[shipper]
  if (status !== success && ![...OF_ROUTES, ...others].includes(status))
    return { fault: `${shipper} answers with the status ${status}`, rows: 0 }
  if (isHead) return { fault: undefined, rows: 0 }
  const document = shipper === 'loki' ? {} : parse(answer)
  if (document === undefined) return { fault: `${shipper} answers without a JSON object`, rows: 0 }
  if (shipper === 'elasticsearch' && status === 200) return judgeBulk(document, headers)
  const isValid = {
    elasticsearch: document['status'] === status && typeof document['error'] === 'object',
    loki: status === 204 ? body === '' : body.endsWith('\n'),
    splunk: Number.isInteger(document['code']),
    datadog: status === 202 || Array.isArray(document['errors']),
  }
  return { fault: isValid[shipper] ? undefined : `a malformed answer of ${shipper}`, rows: 0 }
}

const OF_ROUTES = [400, 401, 403, 405, 413, 415, 422, 501]
const shippers: Readonly<
  Record<ShipperName, { readonly success: number; readonly others: readonly number[] }>
> = {
  elasticsearch: { success: 200, others: [404, 429] },
  loki: { success: 204, others: [404, 429] },
  // HEC has no 404 and no 429: guessed keys and rate limits are 503.
  splunk: { success: 200, others: [503] },
  datadog: { success: 202, others: [404, 429] },
}

function judgeBulk(document: Document, headers: HttpResponse['headers']): Pick<Verdict, 'fault' | 'rows'> {
  const { errors, items = [] } = document
  if (!Array.isArray(items)) return { fault: 'items that are not an array', rows: 0 }
  const statuses = (items as readonly Document[]).map(
    (item) => (Object.values(item)[0] as Document | undefined)?.['status'],
  )
  const stored = statuses.filter((status) => status === 201).length
  const rejected = statuses.filter((status) => status === 400).length
  if (stored + rejected !== items.length) return { fault: 'an item with another status', rows: 0 }
  if (errors !== rejected > 0) return { fault: 'errors differ from the items', rows: 0 }
  return { fault: undefined, rows: headers['idempotency-replayed'] === undefined ? stored : 0 }
}

function parse({ status, headers, body, bytes }: HttpResponse): Document | undefined {
  try {
    const value: unknown = isProtobuf(headers) ? decodeAnswer(status, bytes) : JSON.parse(body)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Document) : undefined
  } catch {
    return undefined
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
