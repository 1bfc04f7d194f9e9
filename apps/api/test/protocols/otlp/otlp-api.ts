import { encodeLogs, field, type OtlpLogRecord, type OtlpResourceLogs } from '@sluice/harness/otlp-logs'
import type { LightMyRequestResponse } from 'fastify'
import type { TestApi } from '../../support/test-api.ts'

export const protobuf = { 'content-type': 'application/x-protobuf' }

export function oneScope(...logRecords: readonly OtlpLogRecord[]): OtlpResourceLogs[] {
  return [{ scopeLogs: [{ logRecords }] }]
}

/** A field with a message of these fields. */
export function embed(number: number, ...fields: readonly Buffer[]): Buffer {
  return field.bytes(number, Buffer.concat(fields))
}

/** A request with one record of these fields. */
export function requestOf(...fields: readonly Buffer[]): Buffer {
  return embed(1, embed(2, embed(2, ...fields)))
}

/** Sends a request in Protocol Buffers. */
export function postLogs(
  api: TestApi,
  resourceLogs: readonly OtlpResourceLogs[],
  headers: Readonly<Record<string, string>> = {},
): Promise<LightMyRequestResponse> {
  return api.post(encodeLogs(resourceLogs), { headers: { ...protobuf, ...headers } })
}

/** The JSON form of a response in Protocol Buffers: an ExportLogsServiceResponse or a google.rpc.Status. */
export function decodeAnswer(status: number, bytes: Buffer = Buffer.alloc(0)): object {
  const fields = fieldsOf(bytes)
  if (status !== 200) return { code: fields[1], message: String(fields[2]) }
  const answer = fields[1]
  if (answer === undefined) return {}
  if (typeof answer === 'number') throw new Error('the response has no message')
  const { 1: rejected, 2: message } = fieldsOf(answer)
  return { partialSuccess: { rejectedLogRecords: String(rejected), errorMessage: String(message) } }
}

/** The fields of a message by their numbers: integers and bytes. */
function fieldsOf(bytes: Buffer): Readonly<Record<number, number | Buffer>> {
  const fields: Record<number, number | Buffer> = {}
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let unit = 1; ; unit *= 128) {
      const byte = bytes.readUInt8(at)
      at += 1
      value += (byte & 0x7f) * unit
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = varint()
    const value = varint()
    if ((tag & 7) === 2) at += value
    fields[tag >> 3] = (tag & 7) === 2 ? bytes.subarray(at - value, at) : value
  }
  return fields
}
