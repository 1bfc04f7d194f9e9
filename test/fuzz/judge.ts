import { entryErrorCodes } from '@sluice/schema'
import { problems } from '../../apps/api/src/problems.ts'
import type { Answer } from './connection.ts'
import type { FuzzRequest } from './fuzz-request.ts'

/** What is known of an answer once it has been looked at. */
export interface Verdict {
  /** What is wrong with it; undefined for an answer that is as documented. */
  readonly fault: string | undefined
  /** The problem's code, or the status. */
  readonly label: string
  /** How many rows it says are stored, that were not before. */
  readonly rows: number
}

type Document = Readonly<Record<string, unknown>>

/** Looks at an answer to a request. */
export function judge(request: FuzzRequest, answer: Answer): Verdict {
  const { status, headers } = answer
  const document = request.isHead ? {} : parse(answer.body)
  const label = typeof document?.['code'] === 'string' ? document['code'] : String(status)
  const rows =
    status === 202 && headers['idempotency-replayed'] === undefined ? acceptedRows(document ?? {}) : 0
  return { fault: faultOf(request, answer, document), label: `${status} ${label}`, rows }
}

function faultOf(
  request: FuzzRequest,
  { status, headers }: Answer,
  document: Document | undefined,
): string | undefined {
  const id = headers['x-request-id'] ?? ''
  if (!/^[!-~]{1,128}$/.test(id)) return `X-Request-Id is "${id}"`
  if (request.requestId !== undefined && id !== request.requestId) return `the answer is to ${id}`
  // What leaves a body unread may end the connection: a refusal, or the answer to a GET that had one.
  if (request.ending === 'keeps' && status === 202 && headers['connection'] === 'close')
    return 'the connection is closed'
  if (status >= 500) return `the status is ${status}`
  if (request.statuses?.includes(status) === false)
    return `the status is ${status}, not ${request.statuses.join(' or ')}`
  if (request.isHead) return undefined
  if (document === undefined) return 'the body is no JSON object'
  if (status === 202) return acceptanceFault(request, headers, document)
  if (status === 200) return document['status'] === 'ok' ? undefined : 'a 200 without the status ok'
  return problemFault(status, headers, document) ?? errorsFault(document['errors'], false)
}

function acceptanceFault(
  { entries }: FuzzRequest,
  headers: Answer['headers'],
  document: Document,
): string | undefined {
  if (!/^application\/json(;|$)/.test(headers['content-type'] ?? '')) return 'a 202 of another type'
  if (document['success'] === undefined) {
    const isWhole =
      document['status'] === 'accepted' && isText(document['id']) && isText(document['timestamp'])
    return isWhole ? undefined : 'a 202 that is neither of an entry nor of a batch'
  }
  const { accepted, rejected } = document
  if (!isCount(accepted) || !isCount(rejected)) return 'a 202 without its counts'
  if (entries !== undefined && accepted + rejected !== entries)
    return `${accepted} + ${rejected} are not ${entries}`
  if (rejected > 0 && document['errors'] === undefined) return 'rejected without a reason'
  return errorsFault(document['errors'], true)
}

function problemFault(status: number, headers: Answer['headers'], document: Document): string | undefined {
  if (!/^application\/problem\+json(;|$)/.test(headers['content-type'] ?? ''))
    return 'a problem of another type'
  const code = String(document['code'])
  const known: { status: number; title: string } | undefined = Object.hasOwn(problems, code)
    ? problems[code as keyof typeof problems]
    : undefined
  if (known === undefined) return `the code ${code} is not documented`
  if (known.status !== status || document['status'] !== status) return `${code} with the status ${status}`
  if (document['title'] !== known.title || !isText(document['detail']))
    return `${code} without its title or detail`
  if (document['requestId'] !== headers['x-request-id']) return 'another request id in the body'
  if (document['type'] !== `urn:sluice:problem:${code}`)
    return `${code} of the type ${String(document['type'])}`
  return undefined
}

function errorsFault(errors: unknown, isBatch: boolean): string | undefined {
  if (errors === undefined) return undefined
  if (!Array.isArray(errors)) return 'errors that are no array'
  for (const error of errors as readonly Document[]) {
    if (isBatch && !isCount(error['index'])) return 'an error without an index'
    if (!isPointer(error['path'])) return `the path ${JSON.stringify(error['path'])}`
    if (!Object.hasOwn(entryErrorCodes, String(error['code'])))
      return `the entry's code ${String(error['code'])}`
    if (!isText(error['message'])) return 'an error without a message'
  }
  return undefined
}

function acceptedRows({ accepted, id }: Document): number {
  if (isCount(accepted)) return accepted
  return isText(id) ? 1 : 0
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

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isPointer = (value: unknown): boolean =>
  typeof value === 'string' && (value === '' || value.startsWith('/'))
