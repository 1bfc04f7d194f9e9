import { Problem } from '../../problems.ts'
import type { Reading } from '../protocol.ts'
import { jsonAnswer, protobufAnswer } from './answers.ts'
import { jsonRecords } from './json-records.ts'
import { MalformedProtobuf } from './protobuf-reader.ts'
import { protobufRecords } from './protobuf-records.ts'

/** A body in Protocol Buffers. */
export function readProtobuf(body: Buffer): Reading {
  return { records: () => rejecting(protobufRecords(body)), answer: protobufAnswer }
}

/** A body in JSON. @param body must be JSON, and an object */
export function readJson(body: Buffer): Reading {
  return { records: () => jsonRecords(body), answer: jsonAnswer }
}

function* rejecting<Item>(records: Iterable<Item>): Generator<Item, void> {
  try {
    yield* records
  } catch (error) {
    if (!(error instanceof MalformedProtobuf)) throw error
    throw new Problem('invalid_protobuf', `The body is not an ExportLogsServiceRequest: ${error.message}.`)
  }
}
