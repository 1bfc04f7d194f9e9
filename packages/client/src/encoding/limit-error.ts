import type { EntryError } from '../entry.ts'

/** Thrown while an entry is encoded, if it exceeds a limit of the API. */
export class LimitError extends Error {
  readonly entryError: EntryError
  /** Whether the metadata may be within the limits if its errors are reduced. */
  mayReduceErrors = false

  constructor(path: string, code: string, message: string) {
    super(message)
    this.entryError = { path, code, message }
  }
}

/** @param error of any kind: objects of the application may throw whatever they like when they are read. Never throws */
export function toEntryError(error: unknown): EntryError {
  const unreadable = {
    path: '',
    code: 'unreadable',
    message: 'an object of the entry threw when it was read',
  }
  try {
    if (error instanceof LimitError) return error.entryError
    if (!(error instanceof Error)) return unreadable
    // Of any type: the application may have replaced it.
    const message: unknown = error.message
    return { ...unreadable, message: String(message) }
  } catch {
    return unreadable
  }
}
