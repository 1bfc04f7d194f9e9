import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** A change of one guard in the code. The simulator must find out that it is missing. */
interface Mutant {
  readonly name: string
  /** Relative to the root of the project. */
  readonly file: string
  /** Occurs once in the file. */
  readonly find: string
  readonly replace: string
}

const changes: Readonly<Record<string, Readonly<Record<string, readonly [find: string, replace: string]>>>> =
  {
    'apps/api/src/chunks/chunk-writer.ts': {
      'a 202 is sent before the chunk is queued': [
        '      const { shard, found } = await this.#queue.addTo(',
        '      stored.resolve(undefined)\n      const { shard, found } = await this.#queue.addTo(',
      ],
    },
    'apps/worker/src/batch-stages.ts': {
      'a rejected batch counts as stored': [
        '        if (rejection === undefined) return this.#stored(batch, 0)',
        '        return this.#stored(batch, 0)',
      ],
      'only the chunks in hand of a claimed batch are inserted': [
        'consumer.load(record.members)',
        'consumer.load(recovery.chunkIds)',
      ],
      'a split batch is sent as a whole': ['rejection || splits.size > 0 ?', 'rejection ?'],
      'a split batch is sent again while parts of it may be in flight': [
        'return splits.size > 0 && this',
        'return splits.size < 0 && this',
      ],
      'a worker does not wait for the parts of a repair that has begun since': [
        'lastRepair > expected ?',
        'lastRepair < 0 ?',
      ],
    },
    'apps/worker/src/retrier.ts': {
      'an insert without an answer counts as stored': ['    throw error', '    return undefined'],
    },
    'test/simulator/simulated-redis.ts': {
      'a chunk is added although its time is complete': [
        'if (chunk.receivedMs <= completeMs) {',
        'if (chunk.receivedMs < -1) {',
      ],
      'a chunk that was admitted is added with its old receipt': [
        'if (chunk.receivedMs < admittedMs) return admittedMs',
        'if (chunk.receivedMs < 0) return admittedMs',
      ],
      'the time of an admitted chunk may become complete before it is added': [
        '        receipts.set(chunkId, completeMs + 1)\n',
        '        return completeMs + 1\n',
      ],
      'an admitted chunk that never comes keeps its time from becoming complete': [
        'if (fenceMs >= this.#time.nowMs) continue',
        'if (fenceMs >= 0) continue',
      ],
      'a chunk is complete when a worker has fetched it': [
        'this.#lock(id, { token, untilMs: this.#nowMs + LOCK_MS })\n      return',
        'this.#lock(id, { token, untilMs: this.#nowMs + LOCK_MS })\n      this.#disk.receipts.delete(id)\n      return',
      ],
      'the time of a chunk in the queue is complete': [
        '...[...receipts.values()].map((ms) => ms - 1)',
        '...[...receipts.values()].map((ms) => ms + 60_000)',
      ],
      'a new batch is confirmed although another worker repairs it': [
        'batch.repairs !== repair) return false',
        'batch.repairs !== repair && repair !== 0) return false',
      ],
      'a split of an earlier repair is persisted': [
        'if (batch.repairs !== repair) throw',
        'if (batch.repairs < repair) throw',
      ],
    },
    'apps/worker/src/batch-splitter.ts': {
      'dead letters count as inserted rows': ['    this.#deadLettered += rows', ''],
      'a split is not persisted before parts are sent': [
        'ledger.recordSplit(id, name, repair)',
        'Promise.resolve(true)',
      ],
      'the token of a split batch is not consumed': [
        '    if (!(await this.#consumeToken(id, left))) return\n',
        '',
      ],
      'a token is consumed with a row that is stored': [
        '(token, await this.#findMissing(rows))',
        '(token, rows)',
      ],
      'parts are sent although the token of their range may be consumed later': [
        'if (hasSuspects && !this.#isLast) this.#suspects += 1',
        'if (hasSuspects && !this.#isLast) return true',
      ],
      'a rejected row is sent although an insert of its range may commit': [
        'else if (this.#deps.clock.nowMs() < this.#unsettledUntilMs) this.#unsettled += 1',
        'else if (this.#unsettledUntilMs < 0) this.#unsettled += 1',
      ],
      'parts are sent without a lookup': [
        'prepare(framesOf(rows), token, true, this.#onUnanswered)',
        'prepare(framesOf(rows), token, false, this.#onUnanswered)',
      ],
      'a row is dead-lettered while an earlier attempt may commit': [
        'else if (!isSettled) this.#unsettled += 1',
        'else if (this.#unsettledUntilMs < 0) this.#unsettled += 1',
      ],
      'a rejected row is dead-lettered although it is stored': [
        'error !== undefined && (await this.#findMissing([row])).length > 0',
        'error !== undefined',
      ],
      'a row that is rejected alone is dead-lettered although it is stored': [
        'await this.#findMissing([...errors.keys()])',
        'errors.keys()',
      ],
      'a row is sent alone before this is persisted': [
        "await this.#persist(listName('alone', group))",
        "this.#learn(listName('alone', group))",
      ],
      'halves are sent before this is persisted': ['      await this.#persist(HALVED)\n', ''],
      'rows are set apart although halves may be in flight': [
        'this.#splits.has(HALVED) ? rows.filter((row) => this.#alone.has(row)) : rows',
        'rows',
      ],
      'dead letters of another repair are stored without a lookup': [
        'this.#tokenOfList(name), true)',
        'this.#tokenOfList(name), false)',
      ],
      'a row that is rejected with an unknown code is dropped': [
        'if (!isKnown && !this.#isLast) this.#suspects += 1',
        'if (!isKnown && !this.#isLast) this.#suspects += 0',
      ],
      'one lost token of a range is one too many': ['const LOST_TOKENS_MAX = 3', 'const LOST_TOKENS_MAX = 0'],
      'a row that is persisted as rejected is inserted again': [
        "of this.#listOf('rejected', name)) this",
        "of this.#listOf('rejected', '')) this",
      ],
      'a row that is sent alone is part of a range': [' && !this.#alone.has(row))\n', ')\n'],
      'an attempt to consume a token that got no answer is forgotten': [
        'this.#onUnanswered, queryId)',
        '() => undefined, queryId)',
      ],
    },
    'packages/clickhouse/src/insert-once.ts': {
      'rows are not looked up before they are sent again': [
        '    let missing = await this.#target.findMissing()',
        '    let missing = this.#target.all',
      ],
      'a token without rows counts as stored': [
        '    if (areTokensAtomic) return\n',
        '    if (areTokensAtomic || true) return\n',
      ],
      'a lost token of a single row has no replacement': [
        'export const REPLACEMENTS_MAX = 3',
        'export const REPLACEMENTS_MAX = 0',
      ],
    },
    'apps/worker/src/batch-delivery.ts': {
      'chunks of a batch that this worker cannot insert are not returned': [
        '        await consumer.requeue(chunkIds, error.end)',
        '        await Promise.resolve()',
      ],
      'rejected chunks return to the front of the queue': [
        "'ClickHouse accepts no rows', 'back'",
        "'ClickHouse accepts no rows', 'front'",
      ],
      'chunks of a finished batch stay in hand': [
        '    consumer.forget(ids.filter((_id, index) => owners[index] === undefined))\n',
        '',
      ],
    },
    'apps/worker/src/worker-events.ts': {
      'a lookup without an answer does not count as a failed insert': [
        "run({ kind: 'lookup', startedMs: clock.nowMs() }, () => storedRows.find(rows))",
        'storedRows.find(rows)',
      ],
    },
    'apps/worker/src/insert-health.ts': {
      'a worker whose inserts failed never retries': [
        'return heldChunks === 0 &&',
        'return heldChunks < 0 &&',
      ],
    },
  }

export const mutants = Object.entries(changes).flatMap(([file, ofFile]) =>
  Object.entries(ofFile).map(([name, [find, replace]]): Mutant => ({ name, file, find, replace })),
)

export function pathOf({ file }: Mutant): string {
  return resolve(import.meta.dirname, '../..', file)
}

/** @returns the changed source. @throws if the source does not have exactly one place to change */
export function mutate(mutant: Mutant): string {
  const { name, file, find, replace } = mutant
  const source = readFileSync(pathOf(mutant), 'utf8')
  if (source.split(find).length !== 2 || find === replace)
    throw new Error(`${file} must contain this string once, for '${name}': ${find}`)
  return source.replace(find, () => replace)
}

/** @throws if one of the mutants cannot be made */
export function checkMutants(): void {
  for (const mutant of mutants) mutate(mutant)
}
