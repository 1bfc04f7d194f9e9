import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** A change of one guard in the code. The simulator must find out that it is missing. */
export interface Mutant {
  readonly name: string
  /** Relative to the root of the project. */
  readonly file: string
  /** Occurs once in the file. */
  readonly find: string
  readonly replace: string
}

const stages = 'apps/worker/src/batch-stages.ts'
const splitter = 'apps/worker/src/batch-splitter.ts'
const splitPass = 'apps/worker/src/split-pass.ts'
const delivery = 'apps/worker/src/batch-delivery.ts'
const insertOnce = 'packages/clickhouse/src/insert-once.ts'
const rowInserter = 'packages/clickhouse/src/row-inserter.ts'

export const mutants: readonly Mutant[] = [
  {
    name: 'a 202 is sent before the chunk is queued',
    file: 'apps/api/src/chunks/chunk-writer.ts',
    find: '      const { shard, found } = await lane.add(',
    replace: '      stored.resolve(undefined)\n      const { shard, found } = await lane.add(',
  },
  {
    name: 'a rejected batch counts as stored',
    file: stages,
    find: "        if (at === 'stored') return this.#stored(batch, 0)",
    replace: '        return this.#stored(batch, 0)',
  },
  {
    name: 'an insert without an answer counts as stored',
    file: 'apps/worker/src/retrier.ts',
    find: '    throw error',
    replace: "    return { at: 'stored' }",
  },
  {
    name: 'only the chunks in hand of a claimed batch are inserted',
    file: stages,
    find: 'consumer.load(record.members)',
    replace: 'consumer.load(recovery.chunkIds)',
  },
  {
    name: 'a split batch is sent as a whole',
    file: stages,
    find: 'isRejected || splits.size > 0 ?',
    replace: 'isRejected ?',
  },
  {
    name: 'a new batch is confirmed although another worker repairs it',
    file: 'test/simulator/simulated-redis.ts',
    find: 'batch.repairs !== repair) return false',
    replace: 'batch.repairs !== repair && repair !== 0) return false',
  },
  {
    name: 'dead letters count as inserted rows',
    file: splitter,
    find: '    pass.deadLettered += rows',
    replace: '',
  },
  {
    name: 'a split is not persisted before parts are sent',
    file: splitter,
    find: 'ledger.recordSplit(pass.id, name, pass.repair)',
    replace: 'Promise.resolve(true)',
  },
  {
    name: 'a split of an earlier repair is persisted',
    file: 'test/simulator/simulated-redis.ts',
    find: 'if (batch.repairs !== repair) throw',
    replace: 'if (batch.repairs < repair) throw',
  },
  {
    name: 'the token of a split range is not consumed',
    file: splitter,
    find: '    if (!(await this.#consumeToken(pass, missing, pass.id, suspects))) return\n',
    replace: '',
  },
  {
    name: 'a token is consumed with a row that is stored',
    file: splitter,
    find: '    const missing = await this.#findMissing(pass, pass.notRejected())',
    replace: '    const missing = pass.notRejected()',
  },
  {
    name: 'parts are sent although the token of their range may be consumed later',
    file: splitter,
    find: 'if (hasSuspects && !pass.isLast) pass.suspects += 1',
    replace: 'if (hasSuspects && !pass.isLast) return true',
  },
  {
    name: 'a rejected row is sent although an insert of its range may commit',
    file: splitter,
    find: 'else if (this.#deps.clock.nowMs() < pass.unsettledUntilMs) pass.unsettled += 1',
    replace: 'else if (pass.unsettledUntilMs < 0) pass.unsettled += 1',
  },
  {
    name: 'parts are sent without a lookup',
    file: splitter,
    find: '        true,\n        this.#onUnanswered(pass),',
    replace: '        false,\n        this.#onUnanswered(pass),',
  },
  {
    name: 'a row is dead-lettered while an earlier attempt may commit',
    file: splitter,
    find: 'else if (!isSettled) pass.unsettled += 1',
    replace: 'else if (pass.unsettledUntilMs < 0) pass.unsettled += 1',
  },
  {
    name: 'a rejected row is dead-lettered although it is stored',
    file: splitter,
    find: "result.at === 'rejected' && (await this.#findMissing(pass, [index])).length > 0",
    replace: "result.at === 'rejected'",
  },
  {
    name: 'a row that is persisted as rejected is inserted again',
    file: splitPass,
    find: '.filter((index) => !this.rejected.has(index))',
    replace: '',
  },
  {
    name: 'a row that is sent alone is part of a range',
    file: splitPass,
    find: '.filter((index) => !this.alone.has(index))',
    replace: '',
  },
  {
    name: 'a row is sent alone before this is persisted',
    file: splitter,
    find: "(!(await this.#persist(pass, listName('alone', group)))) return",
    replace: "(!pass.persisted(listName('alone', group))) return",
  },
  {
    name: 'halves are sent before this is persisted',
    file: splitter,
    find: '      if (!(await this.#persist(pass, HALVED))) return\n',
    replace: '',
  },
  {
    name: 'rows are set apart although halves may be in flight',
    file: splitter,
    find: ' || pass.splits.has(HALVED)) return pass.alone',
    replace: ') return pass.alone',
  },
  {
    name: 'a row that is rejected alone is dead-lettered although it is stored',
    file: splitter,
    find: 'await this.#findMissing(pass, [...errors.keys()])',
    replace: 'errors.keys()',
  },
  {
    name: 'dead letters of another repair are stored without a lookup',
    file: splitter,
    find: 'tokenOfList(pass, name), true)',
    replace: 'tokenOfList(pass, name), false)',
  },
  {
    name: 'a split batch is sent again while parts of it may be in flight',
    file: stages,
    find: 'return splits.size > 0 && this',
    replace: 'return splits.size < 0 && this',
  },
  {
    name: 'a worker does not wait for the parts of a repair that has begun since',
    file: stages,
    find: 'lastRepair > expected ?',
    replace: 'lastRepair < 0 ?',
  },
  {
    name: 'an attempt to consume a token that got no answer is forgotten',
    file: rowInserter,
    find: 'await this.#insert([frame], token, onUnanswered, ',
    replace: 'await this.#insert([frame], token, () => undefined, ',
  },
  {
    name: 'a row that is rejected with an unknown code is dropped',
    file: splitter,
    find: 'if (!isKnown && !pass.isLast) pass.suspects += 1',
    replace: 'if (!isKnown && !pass.isLast) pass.suspects += 0',
  },
  {
    name: 'rows are not looked up before they are sent again',
    file: insertOnce,
    find: '    let missing = await this.#target.findMissing()',
    replace: '    let missing = this.#target.all',
  },
  {
    name: 'a token without rows counts as stored',
    file: insertOnce,
    find: "    if (areTokensAtomic) return 'stored'",
    replace: "    if (areTokensAtomic || true) return 'stored'",
  },
  {
    name: 'a lost token of a single row has no replacement',
    file: insertOnce,
    find: 'export const REPLACEMENTS_MAX = 3',
    replace: 'export const REPLACEMENTS_MAX = 0',
  },
  {
    name: 'one lost token of a range is one too many',
    file: splitter,
    find: 'const LOST_TOKENS_MAX = 3',
    replace: 'const LOST_TOKENS_MAX = 0',
  },
  {
    name: 'chunks of a batch that this worker cannot insert are not returned',
    file: delivery,
    find: '        await consumer.requeue(chunkIds, error.end)',
    replace: '        await Promise.resolve()',
  },
  {
    name: 'rejected chunks return to the front of the queue',
    file: delivery,
    find: "'ClickHouse accepts no rows', 'back'",
    replace: "'ClickHouse accepts no rows', 'front'",
  },
  {
    name: 'a lookup without an answer does not count as a failed insert',
    file: 'apps/worker/src/worker-events.ts',
    find: "run({ kind: 'lookup', startedMs: clock.nowMs() }, () => storedRows.find(frames))",
    replace: 'storedRows.find(frames)',
  },
  {
    name: 'a worker whose inserts failed never retries',
    file: 'apps/worker/src/insert-health.ts',
    find: 'return heldChunks === 0 &&',
    replace: 'return heldChunks < 0 &&',
  },
  {
    name: 'chunks of a finished batch stay in hand',
    file: delivery,
    find: '    consumer.forget(ids.filter((_id, index) => owners[index] === undefined))\n',
    replace: '',
  },
]

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
