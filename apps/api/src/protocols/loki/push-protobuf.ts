import { type SourceRecord, tooManyRecords } from '../../intake/records.ts'
import { limits } from '@sluice/schema'
import { Problem } from '../../problems.ts'
import { addMember, type Members, NAMES_MAX, tooManyNames } from '../entries.ts'
import { MalformedProtobuf, ProtobufReader, tagOf } from '../otlp/protobuf-reader.ts'
import { Steps } from '../otlp/protobuf-scopes.ts'
import { LABELS_CHARACTERS_MAX, parseLabels } from './labels.ts'
import { Stream } from './stream.ts'

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

/** A line in UTF-8 has at most this many bytes, or it is too long. Bytes that are not UTF-8 become three. */
const LINE_BYTES_MAX = 4 * limits.messageCharactersMax
/** A line with its structured metadata, and with fields that are not known. */
const ENTRY_BYTES_MAX = LINE_BYTES_MAX + 2 * limits.metadataBytesMax
/** Two numbers of at most ten bytes, and room for fields that are not known. The length is counted too. */
const TIME_BYTES_MAX = 64
/** Fields of a line and of its structured metadata: each name has three. */
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
        yield* linesOfStream(request.bytes(), steps)
      } else steps.skip(request)
    }
  } catch (error) {
    if (!(error instanceof MalformedProtobuf)) throw error
    throw new Problem('invalid_protobuf', `The body is not a PushRequest: ${error.message}.`)
  }
}

function* linesOfStream(bytes: Buffer, steps: Steps): Generator<SourceRecord | undefined> {
  let labels: Buffer = Buffer.from('{}')
  let hasLines = false
  // The labels may follow the lines. The last ones count.
  const head = new ProtobufReader(bytes)
  for (let tag = head.next(); tag !== -1; tag = head.next()) {
    if (steps.isDue()) yield undefined
    if (tag === streamTags.labels) labels = head.bytes()
    else {
      hasLines ||= tag === streamTags.entries
      steps.skip(head)
    }
  }
  if (!hasLines) return
  const stream = streamOf(labels)
  // Labels take up to a millisecond.
  yield undefined
  const reader = new ProtobufReader(bytes)
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    if (steps.isDue()) yield undefined
    if (tag !== streamTags.entries) steps.skip(reader)
    else {
      const start = reader.at
      const entry = reader.message()
      if (stream === undefined) yield wrongLabels
      else yield reader.at - start > ENTRY_BYTES_MAX ? tooLong : lineOf(entry, stream)
    }
  }
}

/** @returns undefined if the labels are malformed */
function streamOf(bytes: Buffer): Stream | undefined {
  const labels = bytes.length > 4 * LABELS_CHARACTERS_MAX ? undefined : parseLabels(bytes.toString())
  return labels === undefined ? undefined : new Stream(labels)
}

function lineOf(reader: ProtobufReader, stream: Stream): SourceRecord {
  let unixNano: bigint | undefined = 0n
  let line = ''
  const metadata: Members = {}
  const numbers = new Map<string, number>()
  let metadataBytes = 0
  let names = 0
  let fields = 0
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    fields += 1
    if (fields > FIELDS_MAX) return tooManyFields
    const start = reader.at
    if (tag === entryTags.timestamp) {
      const time = reader.message()
      unixNano = reader.at - start > TIME_BYTES_MAX ? undefined : readTime(time)
    } else if (tag === entryTags.line) {
      const bytes = reader.bytes()
      if (bytes.length > LINE_BYTES_MAX) return tooLong
      // Lines of files may have bytes that are not UTF-8. They become U+FFFD.
      line = bytes.toString()
    } else if (tag === entryTags.metadata) {
      const pair = reader.message()
      metadataBytes += reader.at - start
      names += 1
      if (names > NAMES_MAX) return tooManyNames
      if (metadataBytes > limits.metadataBytesMax) return tooLarge
      fields += readPair(pair, metadata, numbers, FIELDS_MAX - fields)
      if (fields > FIELDS_MAX) return tooManyFields
    } else reader.skip()
  }
  return stream.entryOf({ unixNano, line, metadata })
}

/** @returns undefined for a time before 1970 */
function readTime(reader: ProtobufReader): bigint | undefined {
  let seconds = 0n
  let nanos = 0
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    if (tag === timeTags.seconds) seconds = BigInt(JSON.stringify(reader.int64()))
    else if (tag === timeTags.nanos) nanos = reader.int32()
    else reader.skip()
  }
  const unixNano = seconds * 1_000_000_000n + BigInt(nanos)
  return unixNano < 0n ? undefined : unixNano
}

/**
 * @param numbers see `addMember`
 * @param fieldsMax reading stops after one more field
 * @returns the number of fields that were read
 */
function readPair(
  reader: ProtobufReader,
  metadata: Members,
  numbers: Map<string, number>,
  fieldsMax: number,
): number {
  let name = ''
  let value = ''
  let fields = 0
  for (let tag = reader.next(); tag !== -1 && fields <= fieldsMax; tag = reader.next()) {
    fields += 1
    if (tag === pairTags.name) name = reader.bytes().toString()
    else if (tag === pairTags.value) value = reader.bytes().toString()
    else reader.skip()
  }
  addMember(metadata, name, value, numbers)
  return fields
}

const wrongLabels: SourceRecord = {
  error: { path: '', code: 'wrong_type', message: 'has a stream without valid labels, such as {app="x"}' },
}
const tooManyFields: SourceRecord = {
  error: { path: '', code: 'too_large', message: `must have at most ${FIELDS_MAX} fields` },
}
const tooLong: SourceRecord = {
  error: {
    path: '/message',
    code: 'too_long',
    message: `must have at most ${limits.messageCharactersMax} characters`,
  },
}
const tooLarge: SourceRecord = {
  error: {
    path: '/metadata',
    code: 'too_large',
    message: `must have at most ${limits.metadataBytesMax} bytes as JSON`,
  },
}
