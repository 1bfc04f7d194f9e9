import { queryColumns } from '@sluice/query-language'

/** An entry as the API answers it. Numbers that JavaScript would write in another way are raw JSON, which only `textOf` reads. */
export interface Entry {
  readonly id: string
  readonly timestamp: string
  readonly received_at: string
  readonly level: string
  readonly message: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly [column: string]: unknown
}

/** A value as the language compares it: a string as it is, everything else as JSON. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '')

/** Whether a value has members or items, which a number with all its digits does not. */
export const isTree = (value: unknown): value is object =>
  typeof value === 'object' &&
  value !== null &&
  (Array.isArray(value) || Object.getPrototypeOf(value) !== null)

/** A path in the metadata without the word `metadata`, which the language does not need unless a column has the same name. */
export function shortName(name: string): string {
  const path = name.startsWith('metadata.') ? name.slice('metadata.'.length) : name
  return Object.hasOwn(queryColumns, path.split('.')[0] ?? '') ? name : path
}

/** The value at a path in the metadata. A name may itself contain dots. */
function valueAt(value: unknown, path: string): unknown {
  if (!isTree(value)) return undefined
  const members = value as Readonly<Record<string, unknown>>
  if (Object.hasOwn(members, path)) return members[path]
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const name = path.slice(0, dot)
    const found = Object.hasOwn(members, name) ? valueAt(members[name], path.slice(dot + 1)) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** The value of a column, or of a path in the metadata. */
export function fieldOf(entry: Entry, field: string): unknown {
  if (field !== 'metadata' && Object.hasOwn(entry, field)) return entry[field]
  return valueAt(entry.metadata, field.startsWith('metadata.') ? field.slice('metadata.'.length) : field)
}

/** Every value in the metadata that is no object, with its path. */
export function* leavesOf(value: object, prefix = ''): Generator<readonly [path: string, value: unknown]> {
  for (const [name, member] of Object.entries(value)) {
    if (isTree(member) && !Array.isArray(member)) yield* leavesOf(member, `${prefix}${name}.`)
    else yield [`${prefix}${name}`, member]
  }
}

/** Names under which requests and traces are known, in order. */
const correlating = ['trace_id', 'traceId', 'request_id', 'requestId', 'correlation_id', 'span_id', 'job_id']
export function correlationOf(entry: Entry): readonly [field: string, value: string] | undefined {
  for (const field of correlating) {
    const value = fieldOf(entry, field)
    if (value !== undefined && value !== null && !isTree(value)) return [field, textOf(value)]
  }
  return undefined
}
