import { levelOf } from '@sluice/log-formats'
import { limits } from '@sluice/schema'
import type { SourceRecord } from '../../intake/records.ts'
import { addMember, type Members, setMember, toEntry } from '../entries.ts'
import { hasWholeMicroseconds, isTimestamp, toTimestamp } from '../otlp/nanoseconds.ts'

/** The names of labels and of structured metadata that become columns. The first with a usable value is taken. */
const names = {
  level: ['level', 'detected_level', 'severity', 'severity_text'],
  service: ['service_name', 'service', 'app', 'application', 'app_kubernetes_io_name', 'job'],
  environment: ['environment', 'env', 'deployment_environment', 'deployment_environment_name'],
} as const
type Column = keyof typeof names

const isUsable: Readonly<Record<Column, (value: string) => boolean>> = {
  level: (value) => levelOf(value) !== undefined,
  // Loki and its clients write this name if they know none.
  service: (value) =>
    value !== '' && value.length <= limits.serviceCharactersMax && value !== 'unknown_service',
  environment: (value) => value !== '',
}

/** A line, as it is in JSON or in Protocol Buffers. */
export interface StreamLine {
  /** Nanoseconds since 1970. Undefined if they are malformed. */
  readonly unixNano: bigint | undefined
  readonly line: string
  /** Structured metadata. */
  readonly metadata: Readonly<Members>
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
  readonly #fields: Fields

  constructor(labels: Readonly<Members>) {
    this.#labels = labels
    this.#fields = divide(labels)
  }

  /** The line stays the message, even if it is JSON. */
  entryOf({ unixNano, line, metadata }: StreamLine): SourceRecord {
    if (unixNano === undefined || (unixNano !== 0n && !isTimestamp(unixNano))) return invalidTimestamp
    const { columns, rest } =
      Object.keys(metadata).length === 0 ? this.#fields : divide(together(metadata, this.#labels))
    const kept: Members = { ...rest }
    // Columns have microseconds. A label may have the name.
    if (!hasWholeMicroseconds(unixNano)) addMember(kept, 'timeUnixNano', String(unixNano))
    const timestamp = unixNano === 0n ? {} : { timestamp: toTimestamp(unixNano) }
    return { entry: toEntry({ ...timestamp, ...columns, message: line, metadata: kept }) }
  }
}

/** Structured metadata is more specific than labels. */
function together(metadata: Readonly<Members>, labels: Readonly<Members>): Members {
  const all: Members = { ...metadata }
  for (const name of Object.keys(labels)) {
    // Some clients send their labels once more with each line.
    if (!Object.hasOwn(all, name) || all[name] !== labels[name]) addMember(all, name, labels[name])
  }
  return all
}

function divide(members: Readonly<Members>): Fields {
  const columns: Members = {}
  const used = new Set<string>()
  for (const column of Object.keys(names) as Column[]) {
    const name = names[column].find((one) => {
      const value = Object.hasOwn(members, one) ? members[one] : undefined
      return typeof value === 'string' && isUsable[column](value)
    })
    if (name === undefined) continue
    used.add(name)
    columns[column] = members[name]
  }
  const rest: Members = {}
  for (const name of Object.keys(members)) if (!used.has(name)) setMember(rest, name, members[name])
  return { columns, rest }
}

const invalidTimestamp: SourceRecord = {
  error: {
    path: '/timestamp',
    code: 'invalid_timestamp',
    message: 'must be nanoseconds of the years 1970–2261',
  },
}
