import type { EntryError } from '@sluice/schema'
import type { IncomingHttpHeaders } from 'node:http'
import type { Answer } from '../../answer.ts'
import { type Problem, problems } from '../../problems.ts'
import type { Outcome, Reading } from '../protocol.ts'
import { describeError, jsonAnswer } from '../shippers.ts'

export const OTLP_PROTOBUF = 'application/x-protobuf'

/** A response names this many rejected records: enough to find the cause. */
const EXAMPLES_MAX = 3

export function readProtobuf(body: Buffer): Reading {
  return {
    read: (scanner, prefix) => scanner.scanRecords('Otlp', body, prefix),
    rejections: {
      message: ({ message }) => [
        'invalid_protobuf',
        `The body is not an ExportLogsServiceRequest: ${message}.`,
      ],
    },
    answer: protobufAnswer,
  }
}

/** A body in JSON. @param body in which the scanner has found OTLP */
export function readJson(body: Buffer): Reading {
  return { read: (scanner, prefix) => scanner.scanOtlpJson(body, prefix), answer: answerInJson }
}

/** An ExportLogsServiceResponse. It has no field if no record was rejected. */
function protobufAnswer({ records, rejected }: Outcome): Answer {
  const body =
    rejected.size === 0
      ? Buffer.alloc(0)
      : bytesField(1, [numberField(1, rejected.size), bytesField(2, explain(records, rejected))])
  return { status: 200, type: OTLP_PROTOBUF, body }
}

function answerInJson({ records, rejected }: Outcome): Answer {
  if (rejected.size === 0) return jsonAnswer(200, {})
  // 64-bit numbers are strings in the JSON form of Protocol Buffers.
  const rejectedLogRecords = String(rejected.size)
  return jsonAnswer(200, { partialSuccess: { rejectedLogRecords, errorMessage: explain(records, rejected) } })
}

/** Which records were rejected and why: the number of each code, and the first records. */
function explain(records: number, rejected: ReadonlyMap<number, EntryError>): string {
  const counts = new Map<string, number>()
  for (const { code } of rejected.values()) counts.set(code, (counts.get(code) ?? 0) + 1)
  const codes = Array.from(counts, ([code, count]) => `${code} ${count}`).join(', ')
  const examples = Array.from(rejected)
    .slice(0, EXAMPLES_MAX)
    .map(([index, error]) => `Record ${index}: ${describeError(error, '')}.`)
  return `${rejected.size} of ${records} records were rejected (${codes}). ${examples.join(' ')}`
}

/** The codes of google.rpc.Status that correspond to a status. */
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

/** The response to a rejected request with Protocol Buffers: a google.rpc.Status. Undefined for other requests. */
export function rejectOtlp(
  problem: Problem,
  _requestId: string,
  { 'content-type': contentType = '' }: IncomingHttpHeaders,
): Answer | undefined {
  const [mediaType = ''] = contentType.split(';', 1)
  if (mediaType.trim().toLowerCase() !== OTLP_PROTOBUF) return undefined
  const { status } = problems[problem.code]
  const message = bytesField(2, `${problem.code}: ${problem.message}`)
  const body = Buffer.concat([numberField(1, rpcCode(status)), message])
  return { status, type: OTLP_PROTOBUF, body }
}

/** Types of encoded values. */
const VARINT = 0
const BYTES = 2

/** A field with a number, which must not be negative. The default value 0 is not written. */
function numberField(field: number, value: number): Buffer {
  return value === 0 ? Buffer.alloc(0) : Buffer.from([field * 8 + VARINT, ...varint(value)])
}

/** A field with a string, or with a message of these fields. */
function bytesField(field: number, value: string | readonly Buffer[]): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : Buffer.concat(value)
  return Buffer.concat([Buffer.from([field * 8 + BYTES, ...varint(bytes.length)]), bytes])
}

function varint(value: number): number[] {
  const bytes: number[] = []
  let left = value
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) | 0x80)
  bytes.push(left)
  return bytes
}
