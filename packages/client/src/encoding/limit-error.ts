import type { EntryError } from '../entry.ts'

/** Thrown while an entry is encoded, if it exceeds a limit of the API. */
export class LimitError extends Error {
  readonly entryError: EntryError

  constructor(path: string, code: string, message: string) {
    super(message)
    this.entryError = { path, code, message }
  }
}

/** @param error of any kind: objects of the application may throw whatever they like when they are read */
export function toEntryError(error: unknown): EntryError {
  if (error instanceof LimitError) return error.entryError
  const message = error instanceof Error ? error.message : 'an object of the entry threw when it was read'
  return { path: '', code: 'unreadable', message }
}
