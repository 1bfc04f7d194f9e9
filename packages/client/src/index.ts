export {
  type ClientStats,
  type CloseOptions,
  type FlushOptions,
  type FlushResult,
  SluiceClient,
} from './client.ts'
export type { Persistence } from './delivery.ts'
export {
  contractLimits,
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
export {
  type DropReason,
  type EntryRejection,
  type Hooks,
  type Rejection,
  type Retry,
  type Settlement,
  SluiceError,
  type SluiceErrorKind,
} from './hooks.ts'
export { Logger } from './logger.ts'
export type { ClientOptions, Compression, EntryDefaults, OverflowPolicy } from './options.ts'
export type { Platform } from './platform.ts'
export type { Fetch, FetchInit, FetchResponse } from './send.ts'
export type { RecoveredRecord, Spool, SpoolEvents, SpoolRecord } from './spool.ts'
