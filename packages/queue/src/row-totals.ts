/**
 * How many rows of a shard were ever added to its queue, and what became of them. They are in Redis with the queue, and each changes in
 * the script that makes it true. So `added` is the sum of the others and of the rows in the queue, whichever process was killed when.
 */
export interface RowTotals {
  readonly added: number
  /** Rows of confirmed batches that ClickHouse has in the table of logs. */
  readonly inserted: number
  /** Rows of confirmed batches that ClickHouse has in the table of dead letters. */
  readonly deadLettered: number
  /** Rows of failed chunks that an operator deleted. */
  readonly removed: number
}

/** The fields of the totals' hash. */
export const totalsField = {
  added: 'added',
  inserted: 'inserted',
  deadLettered: 'dead-lettered',
  removed: 'removed',
} as const satisfies Record<keyof RowTotals, string>

/** @param hash the fields of the totals in Redis; a field that was never counted is missing */
export function readRowTotals(hash: Readonly<Record<string, string>>): RowTotals {
  const count = (total: keyof RowTotals): number => Number(hash[totalsField[total]] ?? 0)
  return {
    added: count('added'),
    inserted: count('inserted'),
    deadLettered: count('deadLettered'),
    removed: count('removed'),
  }
}

/** Rows that are in the queue, those of failed chunks included. */
export function queuedRows({ added, inserted, deadLettered, removed }: RowTotals): number {
  return added - inserted - deadLettered - removed
}
