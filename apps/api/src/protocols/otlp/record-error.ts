import type { EntryError, EntryErrorCode } from '@sluice/schema'

/** Why one record is rejected, or all records of a resource or a scope. The other records of the request are not affected. */
export class RecordError extends Error {
  override name = 'RecordError'
  readonly entryError: EntryError

  /** @param path a JSON Pointer into the entry */
  constructor(code: EntryErrorCode, message: string, path = '') {
    super(message)
    this.entryError = { path, code, message }
  }
}

/** What a function returns, or the error of the records that it read. */
export function orError<Result>(read: () => Result): Result | RecordError {
  try {
    return read()
  } catch (error) {
    if (error instanceof RecordError) return error
    throw error
  }
}
