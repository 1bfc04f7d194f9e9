import type { EntryError } from '@sluice/schema'
import type { IncomingHttpHeaders } from 'node:http'
import type { Answer } from '../../answer.ts'
import type { Outcome } from '../../intake/records.ts'
import { type Problem, problems } from '../../problems.ts'
import { tagOf } from './protobuf-reader.ts'

/** The media type of OTLP in Protocol Buffers. */
export const OTLP_PROTOBUF = 'application/x-protobuf'

/** An answer names this many rejected records: enough to find the cause. */
const EXAMPLES_MAX = 3

/** An ExportLogsServiceResponse. It has no field if no record was rejected. */
export function protobufAnswer({ records, rejected }: Outcome): Answer {
  return { status: 200, type: OTLP_PROTOBUF, body: partialSuccess(records, rejected) }
}

function partialSuccess(records: number, rejected: Outcome['rejected']): Buffer {
  if (rejected.size === 0) return Buffer.alloc(0)
  return bytesField(
    1,
    Buffer.concat([numberField(1, rejected.size), bytesField(2, explain(records, rejected))]),
  )
}

export function jsonAnswer({ records, rejected }: Outcome): Answer {
  const answer =
    rejected.size === 0
      ? {}
      : {
          // 64-bit numbers are texts in the JSON form of Protocol Buffers.
          partialSuccess: {
            rejectedLogRecords: String(rejected.size),
            errorMessage: explain(records, rejected),
          },
        }
  return { status: 200, type: 'application/json', body: JSON.stringify(answer) }
}

/** Which records were rejected and why: the number of each code, and the first records. */
function explain(records: number, rejected: ReadonlyMap<number, EntryError>): string {
  const counts = new Map<string, number>()
  for (const { code } of rejected.values()) counts.set(code, (counts.get(code) ?? 0) + 1)
  const codes = Array.from(counts, ([code, count]) => `${code} ${count}`).join(', ')
  const examples = Array.from(rejected)
    .slice(0, EXAMPLES_MAX)
    .map(([index, { path, message }]) => `Record ${index}: ${path === '' ? '' : `${path} `}${message}.`)
  return `${rejected.size} of ${records} records were rejected (${codes}). ${examples.join(' ')}`
}

/** The codes of google.rpc.Status that correspond to the status of an answer. */
const rpcCodes: Readonly<Record<number, number>> = {
  400: 3,
  401: 16,
  403: 7,
  404: 5,
  408: 4,
  413: 3,
  415: 3,
  422: 9,
  429: 8,
  500: 13,
  501: 12,
  503: 14,
}
const RPC_UNKNOWN = 2

export function rpcCode(status: number): number {
  return rpcCodes[status] ?? RPC_UNKNOWN
}

/** The answer to a rejected request with Protocol Buffers: a google.rpc.Status. Undefined for other requests. */
export function rejectOtlp(
  problem: Problem,
  _requestId: string,
  { 'content-type': contentType = '' }: IncomingHttpHeaders,
): Answer | undefined {
  const [mediaType = ''] = contentType.split(';', 1)
  if (mediaType.trim().toLowerCase() !== OTLP_PROTOBUF) return undefined
  const { status } = problems[problem.code]
  const body = Buffer.concat([
    numberField(1, rpcCode(status)),
    bytesField(2, `${problem.code}: ${problem.message}`),
  ])
  return { status, type: OTLP_PROTOBUF, body }
}

/** A field of a message with a number, which must not be negative. The default value 0 is not written. */
function numberField(field: number, value: number): Buffer {
  return value === 0 ? Buffer.alloc(0) : Buffer.from([tagOf(field, 'varint'), ...varint(value)])
}

/** A field of a message with a text or a message. */
function bytesField(field: number, value: string | Buffer): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.from([tagOf(field, 'bytes'), ...varint(bytes.length)]), bytes])
}

function varint(value: number): number[] {
  const bytes: number[] = []
  let left = value
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) | 0x80)
  bytes.push(left)
  return bytes
}
