import { Problem } from '../../problems.ts'
import type { Reading } from '../protocol.ts'
import { protobufAnswer } from './answers.ts'
import { MalformedProtobuf } from './protobuf-reader.ts'
import { protobufRecords } from './protobuf-records.ts'

/** A body in Protocol Buffers. */
export function readProtobuf(body: Buffer): Reading {
  return { records: () => rejecting(protobufRecords(body)), answer: protobufAnswer }
}

function* rejecting<Item>(records: Iterable<Item>): Generator<Item, void> {
  try {
    yield* records
  } catch (error) {
    if (!(error instanceof MalformedProtobuf)) throw error
    throw new Problem('invalid_protobuf', `The body is not an ExportLogsServiceRequest: ${error.message}.`)
  }
}
