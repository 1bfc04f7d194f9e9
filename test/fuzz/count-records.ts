import { parseJsonExactly } from '@sluice/rows'
import { OTLP_PROTOBUF } from '../../apps/api/src/protocols/otlp/answers.ts'
import { jsonRecords } from '../../apps/api/src/protocols/otlp/json-records.ts'
import { MalformedProtobuf } from '../../apps/api/src/protocols/otlp/protobuf-reader.ts'
import { protobufRecords } from '../../apps/api/src/protocols/otlp/protobuf-records.ts'
import { Problem } from '../../apps/api/src/problems.ts'

/** The number of records of an OTLP request, valid or not. Undefined if the body is not OTLP. */
export function countRecords(body: Buffer, contentType: string): number | undefined {
  try {
    if (contentType.toLowerCase().startsWith(OTLP_PROTOBUF)) return count(protobufRecords(body))
    return isOtlp(body) ? count(jsonRecords(body)) : undefined
  } catch (error) {
    if (error instanceof MalformedProtobuf || error instanceof Problem || error instanceof SyntaxError)
      return undefined
    throw error
  }
}

function isOtlp(body: Buffer): boolean {
  if (!body.includes('esour')) return false
  const value = parseJsonExactly(body.toString())
  return typeof value === 'object' && value !== null && 'resourceLogs' in value
}

function count(records: Iterable<unknown>): number {
  let found = 0
  for (const record of records) if (record !== undefined) found += 1
  return found
}
