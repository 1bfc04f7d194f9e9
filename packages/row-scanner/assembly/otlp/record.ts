import { Node } from '../tape'
import { Rejection } from './values'

/** A log record. Texts and values are nodes; 0 if there is none. Fields that were not sent have the default values of Protocol Buffers. */
export class LogRecord {
  static time: u64 = 0
  static observedTime: u64 = 0
  static severity: i32 = 0
  static severityText: i32 = 0
  static body: i32 = 0
  /** An object. */
  static attributes: i32 = 0
  static dropped: u32 = 0
  static flags: u32 = 0
  /** Nodes of bytes, or of strings. */
  static traceId: i32 = 0
  static spanId: i32 = 0
  static eventName: i32 = 0

  static clear(): void {
    LogRecord.time = 0
    LogRecord.observedTime = 0
    LogRecord.severity = 0
    LogRecord.severityText = 0
    LogRecord.body = 0
    LogRecord.attributes = 0
    LogRecord.dropped = 0
    LogRecord.flags = 0
    LogRecord.traceId = 0
    LogRecord.spanId = 0
    LogRecord.eventName = 0
    Rejection.code = -1
  }
}

/** Where records come from: a process, a host. */
export class Resource {
  static attributes: i32 = 0
  static dropped: u32 = 0
  static schemaUrl: i32 = 0

  static clear(): void {
    Resource.attributes = 0
    Resource.dropped = 0
    Resource.schemaUrl = 0
    Rejection.code = -1
  }
}

/** What made the records: a library or a logger. */
export class Scope {
  static name: i32 = 0
  static version: i32 = 0
  static attributes: i32 = 0
  static dropped: u32 = 0
  static schemaUrl: i32 = 0

  static clear(): void {
    Scope.name = 0
    Scope.version = 0
    Scope.attributes = 0
    Scope.dropped = 0
    Scope.schemaUrl = 0
    Rejection.code = -1
  }
}

/** Whether there is a string, and it is not empty. */
export function isFilled(address: i32): bool {
  return address !== 0 && Node.of(address).bytes > 0
}
