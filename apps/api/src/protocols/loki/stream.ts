import { readEnvironment, readLevel } from '@sluice/records'
import { metadataError } from '@sluice/rows'
import { limits } from '@sluice/schema'
import type { SourceRecord } from '../../intake/records.ts'
import { addMember, type Members, setMember, toEntry } from '../entries.ts'
import { isEmpty } from '../otlp/log-record.ts'
import { hasWholeMicroseconds, isTimestamp, toTimestamp } from '../otlp/nanoseconds.ts'

/** The names of labels and of structured metadata that become columns. The first with a usable value is taken. */
const names = {
  level: ['level', 'detected_level', 'severity', 'severity_text'],
  service: ['service_name', 'service', 'app', 'application', 'app_kubernetes_io_name', 'job'],
  environment: ['environment', 'env', 'deployment_environment', 'deployment_environment_name'],
} as const
type Column = keyof typeof names

const isUsable: Readonly<Record<Column, (value: string) => boolean>> = {
  level: (value) => readLevel(value, 'pino') !== undefined,
  // Loki and its clients write this name if they know none.
  service: (value) =>
    value !== '' && value.length <= limits.serviceCharactersMax && value !== 'unknown_service',
  environment: (value) => readEnvironment(value) !== undefined,
}

/** A line, as it is in JSON or in Protocol Buffers. */
export interface StreamLine {
  /** Nanoseconds since 1970. Undefined if they are malformed. */
  readonly unixNano: bigint | undefined
  readonly line: string
  /** Structured metadata. */
  readonly metadata: Readonly<Members>
}

/** A member that becomes a column. */
interface Use {
  readonly column: Column
  readonly name: string
  readonly value: string
}

interface Fields {
  /** The values of columns. */
  readonly columns: Readonly<Members>
  /** All other members. */
  readonly rest: Readonly<Members>
}

/** Makes entries of the lines of one stream. */
export class Stream {
  readonly #labels: Readonly<Members>
  readonly #labelsCount: number
  readonly #fields: Fields
  /** Of the metadata of a line that adds nothing to it. */
  readonly #namesCount: number

  constructor(labels: Readonly<Members>) {
    this.#labels = labels
    this.#labelsCount = Object.keys(labels).length
    this.#fields = divide(labels)
    this.#namesCount = this.#countNames({})
  }

  /** The line stays the message, even if it is JSON. */
  entryOf({ unixNano, line, metadata }: StreamLine): SourceRecord {
    if (unixNano === undefined || (unixNano !== 0n && !isTimestamp(unixNano))) return invalidTimestamp
    const isPlain = isEmpty(metadata)
    // Columns have microseconds.
    const hasNanoseconds = !hasWholeMicroseconds(unixNano)
    // Before the labels are copied for a line: that takes as long as to store it, and a request may have 16 Ki lines.
    const count = isPlain ? this.#namesCount : this.#countNames(metadata)
    if (count + (hasNanoseconds ? 1 : 0) > limits.metadataNamesMax) return tooManyNames
    const { columns, rest } = isPlain ? this.#fields : divide(together(metadata, this.#labels))
    const kept: Members = { ...rest }
    // A label may have the name.
    if (hasNanoseconds) addMember(kept, 'timeUnixNano', String(unixNano))
    const timestamp = unixNano === 0n ? {} : { timestamp: toTimestamp(unixNano) }
    return { entry: toEntry({ ...timestamp, ...columns, message: line, metadata: kept }) }
  }

  #countNames(metadata: Readonly<Members>): number {
    let count = this.#labelsCount
    for (const name of Object.keys(metadata)) if (!isRepeated(name, metadata, this.#labels)) count += 1
    const uses = findUses(metadata, this.#labels)
    // A level that says more than that of the entry is kept in addition.
    const isLevelKept = uses.some(
      ({ column, value }) => column === 'level' && readLevel(value, 'pino')?.isExact === false,
    )
    return count - uses.length + (isLevelKept ? 1 : 0)
  }
}

/** Structured metadata is more specific than labels. */
function together(metadata: Readonly<Members>, labels: Readonly<Members>): Members {
  const all: Members = { ...metadata }
  for (const name of Object.keys(labels))
    if (!isRepeated(name, metadata, labels)) addMember(all, name, labels[name])
  return all
}

/** Some clients send their labels once more with each line. */
function isRepeated(name: string, metadata: Readonly<Members>, labels: Readonly<Members>): boolean {
  return Object.hasOwn(metadata, name) && Object.hasOwn(labels, name) && metadata[name] === labels[name]
}

function divide(members: Readonly<Members>): Fields {
  const columns: Members = {}
  const used = new Set<string>()
  for (const { column, name, value } of findUses(members)) {
    used.add(name)
    columns[column] = value
  }
  const rest: Members = {}
  for (const name of Object.keys(members)) if (!used.has(name)) setMember(rest, name, members[name])
  return { columns, rest }
}

/** @param others members that count for names that the first ones do not have */
function findUses(members: Readonly<Members>, others: Readonly<Members> = {}): readonly Use[] {
  const uses: Use[] = []
  for (const column of Object.keys(names) as Column[]) {
    for (const name of names[column]) {
      const owner = Object.hasOwn(members, name) ? members : others
      const value = Object.hasOwn(owner, name) ? owner[name] : undefined
      if (typeof value !== 'string' || !isUsable[column](value)) continue
      uses.push({ column, name, value })
      break
    }
  }
  return uses
}

const tooManyNames: SourceRecord = { error: metadataError('too_many_names', true) }
const invalidTimestamp: SourceRecord = {
  error: {
    path: '/timestamp',
    code: 'invalid_timestamp',
    message: 'must be nanoseconds of the years 1970–2261',
  },
}
