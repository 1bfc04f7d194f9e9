import { addMember, type Members } from '@sluice/records'
import { limits } from '@sluice/schema'
import { type SourceRecord, tooManyRecords } from '../../intake/records.ts'
import { Problem } from '../../problems.ts'
import { orError, RecordError } from '../otlp/log-record.ts'
import { MalformedProtobuf, ProtobufReader, tagOf } from '../otlp/protobuf-reader.ts'
import { Steps } from '../otlp/protobuf-scopes.ts'
import { NAMES_MAX, rejection } from '../shippers.ts'
import { LABELS_CHARACTERS_MAX, type LineReader, linesOfStream, parseLabels } from './stream.ts'

/** logproto.PushRequest, StreamAdapter, EntryAdapter, Timestamp and LabelPairAdapter. */
const streams = tagOf(1, 'bytes')
const streamTags = { labels: tagOf(1, 'bytes'), entries: tagOf(2, 'bytes') } as const
const entryTags = {
  timestamp: tagOf(1, 'bytes'),
  line: tagOf(2, 'bytes'),
  metadata: tagOf(3, 'bytes'),
} as const
const timeTags = { seconds: tagOf(1, 'varint'), nanos: tagOf(2, 'varint') } as const
const pairTags = { name: tagOf(1, 'bytes'), value: tagOf(2, 'bytes') } as const

/** A character has at most four bytes in UTF-8. */
const CHARACTER_BYTES_MAX = 4
/** A line with its structured metadata, and with fields that are not known. */
const ENTRY_BYTES_MAX = CHARACTER_BYTES_MAX * limits.messageCharactersMax + 2 * limits.metadataBytesMax
/** Fields of a line, of its time and of its structured metadata: each name has three. */
const FIELDS_MAX = 4 * NAMES_MAX

/** The lines of a push request in Protocol Buffers. @throws Problem */
export function* pushedProtobuf(body: Buffer): Generator<SourceRecord | undefined> {
  try {
    const steps = new Steps()
    const request = new ProtobufReader(body)
    let count = 0
    for (let tag = request.next(); tag !== -1; tag = request.next()) {
      if (steps.isDue()) yield undefined
      if (tag === streams) {
        count += 1
        if (count > limits.recordsPerRequestMax) throw tooManyRecords()
        yield* recordsOfStream(request.bytes(), steps)
      } else steps.skip(request)
    }
  } catch (error) {
    if (!(error instanceof MalformedProtobuf)) throw error
    throw new Problem('invalid_protobuf', `The body is not a PushRequest: ${error.message}.`)
  }
}

function* recordsOfStream(bytes: Buffer, steps: Steps): Generator<SourceRecord | undefined> {
  let found: Buffer = Buffer.from('{}')
  let hasLines = false
  // The labels may follow the lines. The last ones count.
  const head = new ProtobufReader(bytes)
  for (let tag = head.next(); tag !== -1; tag = head.next()) {
    if (steps.isDue()) yield undefined
    if (tag === streamTags.labels) found = head.bytes()
    else {
      hasLines ||= tag === streamTags.entries
      steps.skip(head)
    }
  }
  if (!hasLines) return
  const isLong = found.length > CHARACTER_BYTES_MAX * LABELS_CHARACTERS_MAX
  const labels = isLong ? undefined : parseLabels(found.toString())
  const read = labels === undefined ? undefined : linesOfStream(labels)
  // Labels take up to a millisecond.
  yield undefined
  const reader = new ProtobufReader(bytes)
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    if (steps.isDue()) yield undefined
    if (tag !== streamTags.entries) steps.skip(reader)
    else {
      const start = reader.at
      const entry = reader.message()
      if (read === undefined) yield wrongLabels
      else yield reader.at - start > ENTRY_BYTES_MAX ? tooLong : recordOfLine(entry, read)
    }
  }
}

const wrongLabels = rejection('wrong_type', 'has a stream without valid labels, such as {app="x"}')
const tooLong = rejection(
  'too_long',
  `must have at most ${limits.messageCharactersMax} characters`,
  '/message',
)

function recordOfLine(reader: ProtobufReader, read: LineReader): SourceRecord {
  const record = orError(() => {
    let unixNano: bigint | undefined = 0n
    let line = ''
    const metadata: Members = {}
    const numbers = new Map<string, number>()
    const fields = new FieldBudget()
    for (let tag = fields.next(reader); tag !== -1; tag = fields.next(reader)) {
      if (tag === entryTags.timestamp) unixNano = readTime(reader.message(), fields)
      // Lines of files may have bytes that are not UTF-8. They become U+FFFD.
      else if (tag === entryTags.line) line = reader.bytes().toString()
      else if (tag === entryTags.metadata) {
        const [name, value] = readPair(reader.message(), fields)
        addMember(metadata, name, value, numbers)
      } else reader.skip()
    }
    return read(unixNano, line, metadata)
  })
  return record instanceof RecordError ? { error: record.entryError } : record
}

/** Bounds the fields of a line: each of them may take only two bytes. */
class FieldBudget {
  #left = FIELDS_MAX

  /** The tag of the next field; -1 after the last one. @throws RecordError */
  next(reader: ProtobufReader): number {
    const tag = reader.next()
    if (tag !== -1) this.#left -= 1
    if (this.#left < 0) throw new RecordError('too_large', `must have at most ${FIELDS_MAX} fields`)
    return tag
  }
}

/** @returns undefined for a time before 1970 @throws RecordError */
function readTime(reader: ProtobufReader, fields: FieldBudget): bigint | undefined {
  let seconds = 0n
  let nanos = 0
  for (let tag = fields.next(reader); tag !== -1; tag = fields.next(reader)) {
    if (tag === timeTags.seconds) seconds = BigInt(JSON.stringify(reader.int64()))
    else if (tag === timeTags.nanos) nanos = reader.int32()
    else reader.skip()
  }
  const unixNano = seconds * 1_000_000_000n + BigInt(nanos)
  return unixNano < 0n ? undefined : unixNano
}

/** @throws RecordError */
function readPair(reader: ProtobufReader, fields: FieldBudget): readonly [name: string, value: string] {
  let name = ''
  let value = ''
  for (let tag = fields.next(reader); tag !== -1; tag = fields.next(reader)) {
    if (tag === pairTags.name) name = reader.bytes().toString()
    else if (tag === pairTags.value) value = reader.bytes().toString()
    else reader.skip()
  }
  return [name, value]
}
