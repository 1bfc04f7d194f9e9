import type { HttpResponse } from '@sluice/harness'
import { entryErrorCodes } from '@sluice/schema'
import { problems } from '../../apps/api/src/problems.ts'
import { OTLP_PROTOBUF, rpcCode } from '../../apps/api/src/protocols/otlp/otlp.ts'
import { decodeAnswer } from '../../apps/api/test/protocols/otlp/otlp-api.ts'
import type { FuzzRequest, ShipperName } from './fuzz-request.ts'

/** The result of checking an answer. */
export interface Verdict {
  /** What is wrong with the answer. Undefined if it is as documented. */
  readonly fault: string | undefined
  /** The status, and the code of a problem. */
  readonly label: string
  /** How many new rows it reports as accepted. A replay reports none. */
  readonly rows: number
}

type Document = Readonly<Record<string, unknown>>

/** Checks the answer to a request. */
export function judge(request: FuzzRequest, answer: HttpResponse): Verdict {
  const isProblem = (answer.headers['content-type'] ?? '').startsWith('application/problem')
  // What is not a valid request for any route is answered with a problem.
  if (request.shipper !== undefined && !isProblem) {
    const { fault, rows } = judgeShipper(request.shipper, answer, request.isHead)
    return { fault: idFault(request, answer) ?? fault, label: `${answer.status} ${request.shipper}`, rows }
  }
  const { status, headers } = answer
  const document = request.isHead ? {} : parse(answer)
  const label = codeOf(document) ?? String(status)
  const isNew = headers['idempotency-replayed'] === undefined
  const rows = isNew && status === 202 ? acceptedRows(document ?? {}) : 0
  const records = isNew && status === 200 ? storedRecords(request, document ?? {}) : 0
  return { fault: faultOf(request, answer, document), label: `${status} ${label}`, rows: rows + records }
}

/** The code of a problem. In an answer with Protocol Buffers, the message begins with it. */
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

function faultOf(
  request: FuzzRequest,
  { status, headers }: HttpResponse,
  document: Document | undefined,
): string | undefined {
  const otherId = idFault(request, { headers })
  if (otherId !== undefined) return otherId
  // An answer that leaves the body unread may close the connection: a rejection, or the answer to a GET with a body.
  if (request.ending === 'keeps' && status === 202 && headers['connection'] === 'close')
    return 'the answer closes the connection'
  // A transfer encoding that the API does not have is the client's mistake.
  if (status >= 500 && status !== problems.unsupported_transfer_encoding.status)
    return `the status is ${status}`
  if (request.statuses?.includes(status) === false)
    return `the status is ${status}, not ${request.statuses.join(' or ')}`
  if (request.isHead) return undefined
  if (document === undefined) return 'the body is not a JSON object'
  if (status === 202) return acceptanceFault(request, headers, document)
  if (status === 200 && document['status'] !== 'ok') return otlpFault(request, document)
  if (status === 200) return undefined
  if (isProtobuf(headers)) return rpcFault(status, document)
  return problemFault(status, headers, document) ?? errorsFault(document['errors'], false)
}

function acceptanceFault(
  { entries }: FuzzRequest,
  headers: HttpResponse['headers'],
  document: Document,
): string | undefined {
  if (!/^application\/json(;|$)/.test(headers['content-type'] ?? ''))
    return 'a 202 with the wrong content type'
  if (document['success'] === undefined) {
    const isWhole =
      document['status'] === 'accepted' && isText(document['id']) && isText(document['timestamp'])
    return isWhole ? undefined : 'a 202 that is neither for an entry nor for a batch'
  }
  const { accepted, rejected } = document
  if (!isCount(accepted) || !isCount(rejected)) return 'a 202 without counts'
  if (entries !== undefined && accepted + rejected !== entries)
    return `${accepted} accepted + ${rejected} rejected is not ${entries}`
  if (rejected > 0 && document['errors'] === undefined) return 'rejected entries without errors'
  return errorsFault(document['errors'], true)
}

function problemFault(
  status: number,
  headers: HttpResponse['headers'],
  document: Document,
): string | undefined {
  if (!/^application\/problem\+json(;|$)/.test(headers['content-type'] ?? ''))
    return 'a problem with the wrong content type'
  const code = String(document['code'])
  const known: { status: number; title: string } | undefined = Object.hasOwn(problems, code)
    ? problems[code as keyof typeof problems]
    : undefined
  if (known === undefined) return `the code ${code} is not documented`
  if (known.status !== status || document['status'] !== status) return `${code} with the status ${status}`
  if (document['title'] !== known.title || !isText(document['detail']))
    return `${code} with a wrong title or without a detail`
  if (document['requestId'] !== headers['x-request-id']) return 'a different request id in the body'
  if (document['type'] !== `urn:sluice:problem:${code}`)
    return `${code} with the type ${String(document['type'])}`
  return undefined
}

function errorsFault(errors: unknown, isBatch: boolean): string | undefined {
  if (errors === undefined) return undefined
  if (!Array.isArray(errors)) return 'errors that are not an array'
  for (const error of errors as readonly Document[]) {
    if (isBatch && !isCount(error['index'])) return 'an error without an index'
    if (!isPointer(error['path'])) return `an error with the path ${JSON.stringify(error['path'])}`
    if (!Object.hasOwn(entryErrorCodes, String(error['code'])))
      return `an error with the code ${String(error['code'])}`
    if (!isText(error['message'])) return 'an error without a message'
  }
  return undefined
}

function otlpFault(request: FuzzRequest, document: Document): string | undefined {
  if (request.ending === 'torn' || request.isCounted === false) return undefined
  if (request.records === undefined) return 'a 200 to a request that is not OTLP'
  const stored = storedRecords(request, document)
  return stored >= 0 && stored <= request.records
    ? undefined
    : `${stored} of ${request.records} records are stored`
}

function rpcFault(status: number, document: Document): string | undefined {
  const code = codeOf(document) ?? ''
  const known = Object.hasOwn(problems, code) ? problems[code as keyof typeof problems] : undefined
  if (known?.status !== status) return `the code ${code} with the status ${status}`
  return document['code'] === rpcCode(status) ? undefined : `the status ${status} with a wrong code of gRPC`
}

function acceptedRows({ accepted, id }: Document): number {
  if (isCount(accepted)) return accepted
  return isText(id) ? 1 : 0
}

/** What an answer in the form of a shipper's API reports. Only that of Elasticsearch has the number of stored rows. */
function judgeShipper(
  shipper: ShipperName,
  answer: HttpResponse,
  isHead: boolean,
): Pick<Verdict, 'fault' | 'rows'> {
  const { status, body, headers } = answer
  const ofRoutes = [400, 401, 403, 405, 413, 415, 422, 501]
  if (status !== shipperSuccess[shipper] && ![...ofRoutes, ...otherStatuses[shipper]].includes(status))
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

const shipperSuccess: Readonly<Record<ShipperName, number>> = {
  elasticsearch: 200,
  loki: 204,
  splunk: 200,
  datadog: 202,
}
/** HEC has no 404 and no 429: guessed keys and rate limits are 503. */
const otherStatuses: Readonly<Record<ShipperName, readonly number[]>> = {
  elasticsearch: [404, 429],
  loki: [404, 429],
  splunk: [503],
  datadog: [404, 429],
}

function judgeBulk(
  { errors, items = [] }: Document,
  headers: HttpResponse['headers'],
): Pick<Verdict, 'fault' | 'rows'> {
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
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Document)
      : undefined
  } catch {
    return undefined
  }
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isPointer = (value: unknown): boolean =>
  typeof value === 'string' && (value === '' || value.startsWith('/'))
