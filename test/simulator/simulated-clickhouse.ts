import { ClickHouseError, type DeadLetter, type Suspects } from '@sluice/clickhouse'
import type { Random } from '@sluice/harness'
import { type RowKey, rowKey, rowsOfFrame } from '@sluice/rows'
import { nameOfId } from '../../packages/rows/test/support/encode-block.ts'
import type { SimulatedTime } from './simulated-time.ts'

/** The ids of rows that ClickHouse rejects begin with one of these. */
export const rejectedIds = { poison: 'poison-', unknown: 'unknown-' } as const

export interface ClickHouseFaults {
  /** Whether it has no memory now for an insert of more than one row. */
  isShortOfMemory: boolean
  /** The same for one insert. */
  failsForMemory: () => boolean
  /** Whether it rejects all rows now, with a code that the worker does not know. */
  isTableBroken: boolean
  /** Whether its clock is so wrong now that the worker must not insert. */
  isClockWrong: boolean
  /** Whether it accepts rows that it rejected before. */
  acceptsAll: boolean
  /** Whether it crashes now between the record of a token and its rows. Only without atomic tokens. */
  crashesInCommit: () => boolean
  /** Whether it stores some partitions of an insert that it rejects. */
  keepsPartOfRejected: () => boolean
  /** Whether it rejects rows after it has stored them, because a materialized view fails. */
  storesRejected: boolean
}

const noFaults: ClickHouseFaults = {
  isShortOfMemory: false,
  failsForMemory: () => false,
  isTableBroken: false,
  isClockWrong: false,
  acceptsAll: false,
  crashesInCommit: () => false,
  keepsPartOfRejected: () => false,
  storesRejected: false,
}
const NO_MEMORY = 'MEMORY_LIMIT_EXCEEDED'

/** An insert that was given up commits at most ten minutes later. The window of the tables is longer than that. */
export const WINDOW_MS = 1_800_000

/** The tables in ClickHouse, with their deduplication tokens. */
export class SimulatedClickHouse {
  readonly #time: Pick<SimulatedTime, 'nowMs'>
  readonly faults: ClickHouseFaults
  /** The ids of the rows or their names (see `nameOfId`), as often as they are stored. */
  readonly rows: string[] = []
  readonly #stored = new Set<string>()
  readonly deadLetters: string[] = []
  /** Called with the time of receipt of each row when it becomes visible. */
  onVisible: (id: string, receivedAt: string) => void = () => undefined
  /** When each was stored, by its partition or table. */
  readonly #tokens = new Map<string, number>()

  constructor(time: Pick<SimulatedTime, 'nowMs'>, faults: Partial<ClickHouseFaults> = {}) {
    this.#time = time
    this.faults = { ...noFaults, ...faults }
  }

  insert(frames: readonly Buffer[], token: string): void {
    const rows = frames.flatMap((frame) => rowsOfFrame(frame) ?? [])
    const allKeys = rows
      .map(rowKey)
      .map(({ id, expiresOn, receivedAt }) => ({ id: nameOfId(id), expiresOn, receivedAt }))
    const byPartition = Map.groupBy(allKeys, ({ expiresOn }) => expiresOn)
    const rejection = this.#rejection(allKeys)
    if (rejection !== undefined && !(this.faults.storesRejected && rejection.type !== NO_MEMORY)) {
      const [first] = byPartition
      if (first !== undefined && byPartition.size > 1 && this.faults.keepsPartOfRejected()) {
        const [partition, keys] = first
        if (this.faults.acceptsAll || keys.every(({ id }) => !isRejected(id)))
          this.#commit(partition, token, keys)
      }
      throw rejection
    }
    for (const [partition, keys] of byPartition) this.#commit(partition, token, keys)
    if (rejection !== undefined) throw rejection
  }

  find(rows: Iterable<RowKey>): ReadonlySet<string> {
    return new Set(Array.from(rows, ({ id }) => id).filter((id) => this.#stored.has(nameOfId(id))))
  }

  hasDeadLetter({ text }: DeadLetter): boolean {
    return this.deadLetters.includes(nameOf(text))
  }

  /** Neither complete nor right: nothing may depend on it, except for the violations. */
  findSuspects(rows: readonly string[], random: Random): Suspects {
    if (random() < 0.3) throw new Error('the rows cannot be checked')
    const constraint = error('117', 'INCORRECT_DATA')
    const found = rows.filter((row) => random() < (isRejected(nameOf(row)) ? 0.9 : 0.1))
    return new Map(
      found.map((row) => {
        const isViolated = random() < 0.7 && this.#rejection([{ id: nameOf(row) }])?.code === constraint.code
        return [rowKey(row).id, isViolated ? constraint : undefined]
      }),
    )
  }

  insertDeadLetters(letters: readonly DeadLetter[], token: string): void {
    if (this.#consume(`dead_letters ${token}`))
      this.deadLetters.push(...letters.map(({ text }) => nameOf(text)))
  }

  #commit(
    partition: string,
    token: string,
    keys: readonly { readonly id: string; readonly receivedAt: string }[],
  ): void {
    if (!this.#consume(`${partition} ${token}`)) return
    for (const { id, receivedAt } of keys) {
      this.onVisible(id, receivedAt)
      this.rows.push(id)
      this.#stored.add(id)
    }
  }

  /** Stores a token. @returns false if it is known */
  #consume(name: string): boolean {
    const { nowMs } = this.#time
    if (nowMs - (this.#tokens.get(name) ?? -WINDOW_MS) < WINDOW_MS) return false
    this.#tokens.set(name, nowMs)
    if (this.faults.crashesInCommit()) throw new Error('no answer')
    return true
  }

  #rejection(keys: readonly { readonly id: string }[]): ClickHouseError | undefined {
    if (this.faults.isTableBroken && keys.length > 0) return error('9999', 'NEW_CODE')
    const open = this.faults.acceptsAll ? [] : keys
    if (open.some(({ id }) => id.startsWith(rejectedIds.poison))) return error('117', 'INCORRECT_DATA')
    if (open.some(({ id }) => id.startsWith(rejectedIds.unknown))) return error('9999', 'NEW_CODE')
    return keys.length > 1 && (this.faults.isShortOfMemory || this.faults.failsForMemory())
      ? error('241', NO_MEMORY)
      : undefined
  }
}

function isRejected(id: string): boolean {
  return Object.values(rejectedIds).some((prefix) => id.startsWith(prefix))
}

/** @param text a row of text or a dead letter */
function nameOf(text: string): string {
  const id = text.startsWith('{') ? (JSON.parse(text) as { id: string }).id : rowKey(text).id
  return nameOfId(id)
}

function error(code: string, type: string): ClickHouseError {
  return new ClickHouseError({ message: type, code, type })
}
