export { type ClientStats, type CloseOptions, SluiceClient } from './client.ts'
export type { FlushOptions, FlushResult } from './delivery/flush.ts'
export type { Persistence } from './delivery/persistence.ts'
export {
  type Entry,
  type EntryError,
  type Environment,
  environments,
  type Level,
  levels,
  type Metadata,
  type QueuedEntry,
  type Source,
  sources,
} from './entry.ts'
export type { Fetch, FetchInit, FetchResponse } from './fetch.ts'
export type { DropReason, EntryRejection, Hooks, Rejection, Retry, Settlement } from './hooks.ts'
export { contractLimits } from './limits.ts'
export { Logger } from './logger.ts'
export type { ClientOptions, Compression, EntryDefaults, OverflowPolicy } from './options.ts'
export type { Platform } from './platform.ts'
export {
  type RecoveredRecord,
  type Spool,
  type SpoolEvents,
  type SpoolRecord,
  UnreadableError,
} from './spool.ts'
export { SluiceError, type SluiceErrorKind } from './sluice-error.ts'
