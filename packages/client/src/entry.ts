import type { environments, levels, sources } from '@sluice/schema/limits'

export type Level = (typeof levels)[number]
export type Environment = (typeof environments)[number]
export type Source = (typeof sources)[number]
export type Metadata = Record<string, unknown>

/** An entry as the API accepts it. A test compares this type with the server's schema. */
export interface Entry {
  level: Level
  message: string
  /** Any JSON object. */
  metadata?: Metadata | null | undefined
  environment?: Environment | null | undefined
  source?: Source | null | undefined
  /** The name of the application. */
  service?: string | null | undefined
  /** The full URL where the log originated. */
  url?: string | null | undefined
  pathname?: string | null | undefined
  stack?: string | null | undefined
  /** ISO 8601. Default: the time of the call. */
  timestamp?: string | null | undefined
  /** Other fields are stored in `metadata` under their own names. */
  [field: string]: unknown
}

/** Why an entry was rejected. `path` is a JSON Pointer into the entry; '' is the entry itself. */
export interface EntryError {
  readonly path: string
  /** Stable: a code of the HTTP API, for the entry or for the whole request. */
  readonly code: string
  readonly message: string
}

/** An entry in the queue, as JSON. */
export interface QueuedEntry {
  readonly json: string
  /** The size of the JSON in UTF-8. */
  readonly bytes: number
  /** The value that was passed to `send` or `sendJson`. */
  readonly tag: unknown
}
