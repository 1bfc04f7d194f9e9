import { encodeLogs, type OtlpLogRecord, type OtlpResourceLogs } from '@sluice/harness/otlp-logs'
import type { LightMyRequestResponse } from 'fastify'
import { ProtobufReader, tagOf } from '../../../src/protocols/otlp/protobuf-reader.ts'
import type { TestApi } from '../../support/test-api.ts'

export const protobuf = { 'content-type': 'application/x-protobuf' }

export function oneScope(...logRecords: readonly OtlpLogRecord[]): OtlpResourceLogs[] {
  return [{ scopeLogs: [{ logRecords }] }]
}

/** Sends a request in Protocol Buffers. */
export function postLogs(
  api: TestApi,
  resourceLogs: readonly OtlpResourceLogs[],
  headers: Readonly<Record<string, string>> = {},
): Promise<LightMyRequestResponse> {
  return api.post(encodeLogs(resourceLogs), { headers: { ...protobuf, ...headers } })
}

/** The number and the text in an ExportLogsServiceResponse. */
export function partialSuccess(response: LightMyRequestResponse): { rejected: number; message: string } {
  const reader = new ProtobufReader(response.rawPayload)
  const result = { rejected: 0, message: '' }
  if (reader.next() === -1) return result
  return { ...result, ...readPair(reader.message(), 'rejected') }
}

/** The code and the message of a google.rpc.Status. */
export function rpcStatus(response: LightMyRequestResponse): { code: number; message: string } {
  return { code: 0, message: '', ...readPair(new ProtobufReader(response.rawPayload), 'code') }
}

function readPair(reader: ProtobufReader, name: string): Record<string, unknown> {
  const pair: Record<string, unknown> = {}
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    if (tag === tagOf(1, 'varint')) pair[name] = reader.uint32()
    else if (tag === tagOf(2, 'bytes')) pair['message'] = reader.string()
    else throw new Error(`unknown field ${tag}`)
  }
  return pair
}

/** The rows that the API has stored, with their metadata as an object. */
export function storedRows(api: TestApi): Record<string, unknown>[] {
  return api.queue.rows.map(({ metadata_text: text = '', ...row }) => ({
    ...row,
    metadata: JSON.parse(text) as unknown,
  }))
}
