import { classifyInsertError, type InsertFailure, type InsertResult } from '@sluice/clickhouse'

/** The result of an attempt to insert. A rejection is an error of ClickHouse that a retry does not resolve. */
export type AttemptResult =
  | { readonly at: InsertResult }
  | { readonly at: 'rejected'; readonly error: unknown }

/**
 * Makes one attempt to insert.
 *
 * @param run the attempt
 * @param isRejection which failures are rejections; others are thrown, to be retried. An unknown failure is never one
 */
export async function attemptInsert(
  run: () => Promise<InsertResult>,
  isRejection: (failure: InsertFailure) => boolean,
): Promise<AttemptResult> {
  try {
    return { at: await run() }
  } catch (error) {
    const { failure } = classifyInsertError(error)
    if (failure !== 'unknown' && isRejection(failure)) return { at: 'rejected', error }
    throw error
  }
}
