/**
 * The ids of Sluice's queries in ClickHouse. An insert has the same id in all of its attempts, in whichever process: ClickHouse rejects
 * an attempt while an earlier one is still running (error 216). Operators recognise the ids by their prefix.
 */
export const queryIds = {
  /** An insert of rows. */
  rows: (token: string) => `sluice/rows/${token}`,
  /** The insert of a row that consumes a token. Another id than that of the insert with this token, for which it must not wait. */
  consumedToken: (token: string) => `sluice/token/${token}`,
  /** An insert of a dead letter. */
  deadLetter: (token: string) => `sluice/dead-letter/${token}`,
  /** The retry of a dead letter: an insert of its row. */
  deadLetterRetry: (letterId: string) => `sluice/dead-letter-retry/${letterId}`,
  /** A lookup. Each has another id. */
  lookup: (id: string) => `sluice/lookup/${id}`,
  /** A query of the clock. Each has another id. */
  clock: (id: string) => `sluice/clock/${id}`,
} as const
