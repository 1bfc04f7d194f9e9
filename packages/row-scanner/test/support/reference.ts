// The slow definition of what the scanner makes of a body.
import { parseTimestamp, type RequestStamp } from '@sluice/rows'
import { EntryValidator, textPrefix, type TextPrefix } from '@sluice/rows/testing'
import { entryFields, limits } from '@sluice/schema'
import { parseText, type Value, toValue } from './json.ts'

/** The first id of each body. */
export const ID = '01a1fb4d-5bd1-7000-83e0-56d2211cd84d'
/** Gives all rows the id of the first one. */
export const withOneId = (rows: string): string =>
  rows.replace(/(?<=01a1fb4d-5bd1-7)[\da-f]{3}(?=-83e0)/g, '000')
const idOf = (row: number): string => ID.replace('7000', `7${row.toString(16).padStart(3, '0')}`)
export const stamp: RequestStamp = {
  projectId: 'demo',
  retentionDays: 30,
  receivedAtMs: Date.UTC(2026, 10, 20),
}
const validator = new EntryValidator()

export interface Outcome {
  readonly kind?: string
  readonly entries?: number
  /** The rows, each with its newline. */
  readonly rows?: string
  readonly errors?: readonly unknown[]
  readonly single?: { readonly id: string; readonly timestamp: string | undefined } | undefined
  /** Where a body that is not JSON is at fault. */
  readonly invalid?: string
}

export function referenceOf(
  body: Buffer,
  isNdjson: boolean,
  prefix: TextPrefix = textPrefix(stamp),
): Outcome {
  const text = body.toString()
  if (isNdjson) {
    const lines = text.split('\n').map((line) => line.replace(/\r$/, ''))
    const filled = lines.filter((line) => !/^[ \t\r]*$/.test(line))
    return { kind: 'batch', ...take(filled.map(parseText), prefix), single: undefined }
  }
  const root = parseText(text)
  if (typeof root === 'string') return { invalid: root }
  const none = { entries: 0, rows: '', errors: [], single: undefined }
  if (root.kind === 'array') return { kind: 'batch', ...take(root.elements, prefix), single: undefined }
  if (root.kind !== 'object') return { kind: 'other', ...none }
  const logs = root.members.get('logs')
  if (logs !== undefined)
    return logs.value.kind === 'array'
      ? { kind: 'batch', ...take(logs.value.elements, prefix), single: undefined }
      : { kind: 'wrong-logs', ...none }
  if (root.members.has('resourceLogs') && !root.members.has('level') && !root.members.has('message'))
    return { kind: 'otlp', ...none }
  const taken = take([root], prefix)
  const timestamp = root.members.get('timestamp')?.value
  const sent = timestamp?.kind === 'string' ? timestamp.string : undefined
  return { kind: 'entry', ...taken, single: taken.rows === '' ? undefined : { id: ID, timestamp: sent } }
}

function take(
  values: readonly (Value | string)[],
  prefix: TextPrefix,
): Omit<Outcome, 'kind'> & { rows: string } {
  let rows = ''
  let count = 0
  const errors: unknown[] = []
  for (const [index, value] of values.slice(0, limits.entriesPerRequestMax).entries()) {
    if (typeof value === 'string')
      errors.push({ index, path: '', code: 'invalid_json', message: `is not JSON: ${value}` })
    else {
      const row = rowOf(value, prefix, idOf(count))
      if (typeof row === 'string') {
        rows += row
        count += 1
      } else {
        for (const error of row) errors.push({ index, ...error })
      }
    }
  }
  return { entries: values.length, rows, errors }
}

/** A row, or the errors of the entry. */
function rowOf(value: Value, prefix: TextPrefix, id: string): string | readonly object[] {
  const plain = toValue(value)
  if (!validator.isEntry(plain) || value.kind !== 'object') return validator.explain(plain)
  const metadata = value.members.get('metadata')?.value
  const own = metadata?.kind === 'object' ? metadata.members : new Map<string, never>()
  const unknown = [...value.members].filter(([name]) => !entryFields.has(name) && !own.has(name))
  const members = [...own, ...unknown]
  const levels = 1 + Math.max(0, ...members.map(([, member]) => levelsOf(member.value)))
  const text = `{${members.map(([name, member]) => `${nameOf(name, member.rawName)}:${textOf(member.value)}`).join(',')}}`
  const where = metadata?.kind === 'object' ? '/metadata' : ''
  const subject = where === '' ? 'metadata, which includes unknown fields, ' : ''
  if (levels > limits.metadataDepthMax)
    return [
      {
        path: where,
        code: 'too_deep',
        message: `${subject}must have at most ${limits.metadataDepthMax} levels`,
      },
    ]
  if (Buffer.byteLength(text) > limits.metadataBytesMax)
    return [
      {
        path: where,
        code: 'too_large',
        message: `${subject}must have at most ${limits.metadataBytesMax} bytes as JSON`,
      },
    ]
  if (members.length > limits.metadataNamesMax)
    return [
      {
        path: where,
        code: 'too_many_names',
        message: `${subject}must have at most ${limits.metadataNamesMax} names`,
      },
    ]
  const entry = plain
  const timestamp = typeof entry.timestamp === 'string' ? timeOf(entry.timestamp) : prefix.receivedAt
  if (timestamp === undefined)
    return [
      {
        path: '/timestamp',
        code: 'invalid_timestamp',
        message: 'must be an ISO 8601 date-time of 1970–2261',
      },
    ]
  const stored = [...value.members].filter(([name]) => entryFields.has(name) || !own.has(name))
  const lone = findLone({ kind: 'object', members: new Map(stored) })
  if (lone !== undefined)
    return [{ path: lone, code: 'invalid_unicode', message: 'must not contain half of a surrogate pair' }]
  const columns = [
    entry.environment,
    entry.source,
    entry.service,
    entry.url,
    entry.pathname,
    entry.message,
    entry.stack,
  ]
  return `${prefix.text}${id}\t${timestamp}\t${entry.level}\t${columns.map((column) => escapeTsv(column ?? '')).join('\t')}\t${escapeTsv(text)}\n`
}

/** With microseconds. */
function timeOf(string: string): string | undefined {
  const [, date, time, fraction = ''] =
    /^(.{10})[T ](.{8})(?:\.(\d+))?/.exec(parseTimestamp(string) ?? '') ?? []
  return date && `${date} ${time}.${fraction.padEnd(6, '0').slice(0, 6)}`
}

/** A name with an escape is written anew. */
export const nameOf = (name: string, raw: string): string => (raw.includes('\\') ? JSON.stringify(name) : raw)

export function textOf(value: Value): string {
  if (value.kind === 'array') return `[${value.elements.map(textOf).join(',')}]`
  if (value.kind !== 'object') return value.raw
  return `{${[...value.members].map(([name, member]) => `${nameOf(name, member.rawName)}:${textOf(member.value)}`).join(',')}}`
}

function levelsOf(value: Value): number {
  if (value.kind === 'array') return 1 + Math.max(0, ...value.elements.map(levelsOf))
  if (value.kind !== 'object') return 0
  return 1 + Math.max(0, ...[...value.members.values()].map((member) => levelsOf(member.value)))
}

/** The path of the first string with half of a surrogate pair, or of the object around a name that has it. */
function findLone(value: Value): string | undefined {
  if (value.kind === 'string') return value.string.isWellFormed() ? undefined : ''
  if (value.kind === 'array') {
    for (const [i, element] of value.elements.entries()) {
      const found = findLone(element)
      if (found !== undefined) return `/${i}${found}`
    }
  }
  if (value.kind === 'object') {
    for (const [name, member] of value.members) {
      if (!name.isWellFormed()) return ''
      const found = findLone(member.value)
      if (found !== undefined) return `${pointer(name)}${found}`
    }
  }
  return undefined
}

const pointer = (name: string): string => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`

export const escapeTsv = (string: string): string =>
  string.replaceAll('\\', '\\\\').replaceAll('\t', '\\t').replaceAll('\n', '\\n')
