import { encodeLogs, field, type OtlpLogRecord, type OtlpResourceLogs } from '@sluice/harness/otlp-logs'
import type { LightMyRequestResponse } from 'fastify'
import { ProtobufReader, tagOf } from '../../../src/protocols/otlp/protobuf-reader.ts'
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
  const reader = new ProtobufReader(bytes)
  if (status !== 200) return readPair(reader, 'code', (number) => number)
  if (reader.next() === -1) return {}
  const { message, ...counts } = readPair(reader.message(), 'rejectedLogRecords', String)
  if (reader.next() !== -1) throw new Error('the response continues')
  return { partialSuccess: { ...counts, errorMessage: message } }
}

function readPair(
  reader: ProtobufReader,
  name: string,
  convert: (number: number) => unknown,
): Record<string, unknown> {
  const pair: Record<string, unknown> = {}
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    if (tag === tagOf(1, 'varint')) pair[name] = convert(reader.uint32())
    else if (tag === tagOf(2, 'bytes')) pair['message'] = reader.string()
    else throw new Error(`unknown field ${tag}`)
  }
  return pair
}
