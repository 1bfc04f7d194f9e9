import { addMember, type Members, readEnvironment, readLevel, setMember } from '@sluice/records'
import { hasAtMostCharacters, limits } from '@sluice/schema'
import type { SourceRecord } from '../../intake/records.ts'
import { hasWholeMicroseconds, isEmpty, isTimestamp, toTimestamp } from '../otlp/log-record.ts'
import { NAMES_MAX, rejection, toEntry } from '../shippers.ts'

/** The columns that labels and structured metadata may become, and their names. The first name with a usable value is taken. */
const columns = {
  level: {
    names: ['level', 'detected_level', 'severity', 'severity_text'],
    isUsable: (value) => readLevel(value, 'pino') !== undefined,
  },
  service: {
    names: ['service_name', 'service', 'app', 'application', 'app_kubernetes_io_name', 'job'],
    // Promtail and Loki write this name if they know none.
    isUsable: (value) =>
      value !== '' && value !== 'unknown_service' && hasAtMostCharacters(value, limits.serviceCharactersMax),
  },
  environment: {
    names: ['environment', 'env', 'deployment_environment', 'deployment_environment_name'],
    isUsable: (value) => readEnvironment(value) !== undefined,
  },
} as const satisfies Readonly<
  Record<string, { readonly names: readonly string[]; readonly isUsable: (value: string) => boolean }>
>

/**
 * Makes the record of a line, as it is in JSON or in Protocol Buffers.
 *
 * @param unixNano nanoseconds since 1970. Undefined if they are malformed
 * @param metadata structured metadata
 */
export type LineReader = (
  unixNano: bigint | undefined,
  line: string,
  metadata: Readonly<Members>,
) => SourceRecord

/** Makes records of the lines of one stream. A line stays the message, even if it is JSON. */
export function linesOfStream(labels: Readonly<Members>): LineReader {
  const fieldsOfLabels = divide(labels)
  return (unixNano, line, metadata) => {
    if (unixNano === undefined || (unixNano !== 0n && !isTimestamp(unixNano))) return invalidTimestamp
    const { fields, rest } = isEmpty(metadata) ? fieldsOfLabels : divide(together(metadata, labels))
    const kept: Members = { ...rest }
    // Columns have microseconds. A label may have the name.
    if (!hasWholeMicroseconds(unixNano)) addMember(kept, 'timeUnixNano', String(unixNano))
    const timestamp = unixNano === 0n ? {} : { timestamp: toTimestamp(unixNano) }
    return { entry: toEntry({ ...timestamp, ...fields, message: line, metadata: kept }) }
  }
}

const invalidTimestamp = rejection(
  'invalid_timestamp',
  'must be nanoseconds of the years 1970–2261',
  '/timestamp',
)

/** Structured metadata is more specific than labels. Some clients send their labels once more with each line. */
function together(metadata: Readonly<Members>, labels: Readonly<Members>): Members {
  const all: Members = { ...metadata }
  for (const name of Object.keys(labels)) {
    const isRepeated = Object.hasOwn(metadata, name) && metadata[name] === labels[name]
    if (!isRepeated) addMember(all, name, labels[name])
  }
  return all
}

/** The members that become columns, and the others. */
function divide(members: Readonly<Members>): {
  readonly fields: Readonly<Members>
  readonly rest: Readonly<Members>
} {
  const fields: Members = {}
  const used = new Set<string>()
  for (const [column, { names, isUsable }] of Object.entries(columns)) {
    const name = names.find((one) => {
      const value = Object.hasOwn(members, one) ? members[one] : undefined
      return typeof value === 'string' && isUsable(value)
    })
    if (name === undefined) continue
    used.add(name)
    fields[column] = members[name]
  }
  const rest: Members = {}
  for (const name of Object.keys(members)) if (!used.has(name)) setMember(rest, name, members[name])
  return { fields, rest }
}

/** Loki's own limits allow about 46 KiB. The labels of a stream are in the row of each of its lines. */
export const LABELS_CHARACTERS_MAX = 16_384

/** `name="value"` and what follows. Names may be quoted. Values are quoted as in Go, or raw between backquotes. */
const LABEL =
  /\s*([A-Za-z_][\w.:]*|"(?:[^"\\\n]|\\.)*")\s*=\s*("(?:[^"\\\n]|\\.)*"|`[^`]*`)\s*(?:,\s*(?=\})|(?=\})|,)/y
const END = /\s*\}\s*$/y

/**
 * Parses the labels of a stream in Protocol Buffers: `{app="x", level="info"}`. A second value of a label gets a number.
 *
 * @returns undefined if the string is malformed or too long, or has too many labels
 */
export function parseLabels(string: string): Members | undefined {
  const start = /^\s*\{/.exec(string.slice(0, LABELS_CHARACTERS_MAX))?.[0].length
  if (start === undefined || string.length > LABELS_CHARACTERS_MAX) return undefined
  const labels: Members = {}
  const numbers = new Map<string, number>()
  let count = 0
  LABEL.lastIndex = start
  let end = start
  for (let match = LABEL.exec(string); match !== null; match = LABEL.exec(string)) {
    const [, name = '', value = ''] = match
    count += 1
    if (count > NAMES_MAX) return undefined
    addMember(labels, name.startsWith('"') ? unquote(name) : name, unquote(value), numbers)
    end = LABEL.lastIndex
    if (string[end] === '}') break
    LABEL.lastIndex = end
  }
  END.lastIndex = end
  return END.test(string) ? labels : undefined
}

/** An escape in a string of Go, whose formatter `%q` Promtail and Alloy use. */
const ESCAPE = /\\(x[0-9A-Fa-f]{2}|[0-7]{3}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)/g
const letters: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}
const REPLACEMENT = '\u{FFFD}'
const ASCII_MAX = 0x7f
const CODE_POINT_MAX = 0x10_ffff

function unquote(quoted: string): string {
  const content = quoted.slice(1, -1)
  return quoted.startsWith('`') || !content.includes('\\') ? content : content.replace(ESCAPE, decodeEscape)
}

function decodeEscape(_escape: string, body: string): string {
  const kind = body[0] ?? ''
  if (body.length === 1) return letters[kind] ?? body
  const code = /[xuU]/.test(kind) ? Number.parseInt(body.slice(1), 16) : Number.parseInt(body, 8)
  // Escaped bytes above ASCII are parts of a string that is not UTF-8.
  const max = /[uU]/.test(kind) ? CODE_POINT_MAX : ASCII_MAX
  const isSurrogate = code >= 0xd800 && code < 0xe000
  return isSurrogate || code > max ? REPLACEMENT : String.fromCodePoint(code)
}
