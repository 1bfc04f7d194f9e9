import { classifyInsertError, type InsertFailure, type InsertOnce } from '@sluice/clickhouse'

/** The result of an attempt to insert: done, or rejected by ClickHouse with an error that a retry does not resolve. */
export type AttemptResult =
  | { readonly rejected: false }
  | { readonly rejected: true; readonly error: unknown }

/**
 * Makes one attempt to insert.
 *
 * @param isRejection which failures are rejections; others are thrown, to be retried
 */
export async function attemptInsert<T>(
  insert: InsertOnce<T>,
  isRejection: (failure: InsertFailure) => boolean,
): Promise<AttemptResult> {
  try {
    await insert.run()
    return { rejected: false }
  } catch (error) {
    if (isRejection(classifyInsertError(error).failure)) return { rejected: true, error }
    throw error
  }
}
