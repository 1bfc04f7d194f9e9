import type { ClickHouseError } from '@sluice/clickhouse'
import { rowKey } from '@sluice/rows'
import type { BatchInRepair, EarlierAttempts, Suspension } from './batch.ts'

/** The name under which the split of the whole batch is persisted. */
export const WHOLE_BATCH = 'all'
/** The name under which it is persisted that halves of the batch may be sent. From then on, no more rows are set apart. */
export const HALVED = 'halved'

/** The names that are persisted of lists of rows: rows that are sent alone, and rows that ClickHouse has rejected. */
export type RowList = 'alone' | 'rejected'

/** One attempt to insert a batch in parts. */
export class SplitPass {
  readonly id: string
  readonly repair: number
  /** The rows of all readable chunks, each with its newline. */
  readonly rows: string[] = []
  /** What is persisted of the batch, as far as this worker knows: the ranges that are split, lists of rows, and `HALVED`. */
  readonly splits: Set<string>
  /** Rows that are sent alone. No range contains them. */
  readonly alone = new Set<number>()
  /** The constraints that rows violate, as ClickHouse has evaluated them. */
  readonly violations = new Map<number, ClickHouseError>()
  /** The constraints, by their errors, for which ClickHouse has rejected a row that was sent alone. */
  readonly confirmed = new Set<string>()
  /** The error of the insert of all rows that ClickHouse seems to accept. */
  acceptedError: unknown
  /** Rows that ClickHouse has rejected. They are not sent. */
  readonly rejected = new Set<number>()
  /** Whether an earlier repair may have sent parts. */
  readonly hasHistory: boolean
  readonly startedMs: number
  /** Whether rows that are rejected with an unknown code are dead-lettered. */
  readonly isLast: boolean
  unsettledUntilMs: number
  /** Rows that were rejected with an unknown code. */
  suspects = 0
  /** Rejected rows and ranges of such rows whose earlier attempts may still commit. */
  unsettled = 0
  /** Whether all rows were stored before anything was sent. */
  wasStored = false
  /** Rows that are dead letters, also from earlier attempts: each attempt goes through all rows. */
  deadLettered = 0

  constructor(
    { id, splits, repair }: BatchInRepair,
    startedMs: number,
    unsettledUntilMs: number,
    isLast: boolean,
  ) {
    this.id = id
    this.repair = repair
    this.splits = new Set(splits)
    this.hasHistory = splits.size > 0
    this.startedMs = startedMs
    this.unsettledUntilMs = unsettledUntilMs
    this.isLast = isLast
    for (const name of splits) this.#learn(name)
  }

  /** Notes that something is persisted. @returns whether that is new */
  persisted(name: string): boolean {
    if (this.splits.has(name)) return false
    this.splits.add(name)
    this.#learn(name)
    return true
  }

  /** The lists of rejected rows that are persisted. Each has dead letters with one token. */
  get rejections(): string[] {
    return [...this.splits].filter((name) => listOf('rejected', name) !== undefined)
  }

  /** The rows of a range that are not rejected. By default of the whole batch. */
  notRejected(from = 0, to = this.rows.length): number[] {
    return Array.from({ length: to - from }, (_, i) => from + i).filter((index) => !this.rejected.has(index))
  }

  /** The rows of a range that are sent with others. */
  open(from: number, to: number): number[] {
    return this.notRejected(from, to).filter((index) => !this.alone.has(index))
  }

  row(index: number): string {
    return this.rows[index] ?? ''
  }

  rowId(index: number): string {
    return rowKey(this.row(index)).id
  }

  earlier(suspension: Suspension | undefined): EarlierAttempts {
    const { unsettledUntilMs, startedMs } = this
    return { unsettledUntilMs, suspension: { firstMs: suspension?.firstMs ?? startedMs, lastMs: startedMs } }
  }

  #learn(name: string): void {
    for (const index of listOf('alone', name) ?? []) this.alone.add(index)
    for (const index of listOf('rejected', name) ?? []) this.rejected.add(index)
  }
}

export function rangeName(from: number, to: number): string {
  return `${from}-${to}`
}

/** The name of a list of rows. A single rejected row has the name of its range. */
export function listName(list: RowList, indexes: readonly number[]): string {
  const [first, ...others] = indexes
  if (list === 'rejected' && first !== undefined && others.length === 0) return rangeName(first, first + 1)
  return `${list}:${indexes.join(',')}`
}

/** The rows of a list by its name; undefined if the name is that of something else. */
export function listOf(list: RowList, name: string): number[] | undefined {
  if (name.startsWith(`${list}:`))
    return name
      .slice(list.length + 1)
      .split(',')
      .map(Number)
  const [from, to] = name.split('-').map(Number)
  return list === 'rejected' && from !== undefined && to === from + 1 ? [from] : undefined
}
