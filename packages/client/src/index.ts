export {
  type ClientStats,
  type CloseOptions,
  type FlushOptions,
  type FlushResult,
  SluiceClient,
} from './client.ts'
export type { Persistence } from './delivery.ts'
export * from './entry.ts'
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
export type {
  ClientOptions,
  Compression,
  EntryDefaults,
  Fetch,
  FetchInit,
  FetchResponse,
  OverflowPolicy,
} from './options.ts'
export type { Platform } from './platform.ts'
export type { RecoveredRecord, Spool, SpoolEvents, SpoolRecord } from './spool.ts'
