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
        "        if (result.at === 'stored') return this.#stored(batch, 0)",
        '        return this.#stored(batch, 0)',
      ],
      'only the chunks in hand of a claimed batch are inserted': [
        'consumer.load(record.members)',
        'consumer.load(recovery.chunkIds)',
      ],
      'a split batch is sent as a whole': ['isRejected || splits.size > 0 ?', 'isRejected ?'],
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
      'an insert without an answer counts as stored': ['    throw error', "    return { at: 'stored' }"],
    },
    'test/simulator/simulated-redis.ts': {
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
      'dead letters count as inserted rows': ['    pass.deadLettered += rows', ''],
      'a split is not persisted before parts are sent': [
        'ledger.recordSplit(pass.id, name, pass.repair)',
        'Promise.resolve(true)',
      ],
      'the token of a split batch is not consumed': [
        '    if (!(await this.#consumeToken(pass, missing, pass.id, suspects))) return\n',
        '',
      ],
      'a token is consumed with a row that is stored': [
        '    const missing = await this.#findMissing(pass, pass.notRejected())',
        '    const missing = pass.notRejected()',
      ],
      'parts are sent although the token of their range may be consumed later': [
        'if (hasSuspects && !pass.isLast) pass.suspects += 1',
        'if (hasSuspects && !pass.isLast) return true',
      ],
      'a rejected row is sent although an insert of its range may commit': [
        'else if (this.#deps.clock.nowMs() < pass.unsettledUntilMs) pass.unsettled += 1',
        'else if (pass.unsettledUntilMs < 0) pass.unsettled += 1',
      ],
      'parts are sent without a lookup': [
        '        true,\n        this.#onUnanswered(pass),',
        '        false,\n        this.#onUnanswered(pass),',
      ],
      'a row is dead-lettered while an earlier attempt may commit': [
        'else if (!isSettled) pass.unsettled += 1',
        'else if (pass.unsettledUntilMs < 0) pass.unsettled += 1',
      ],
      'a rejected row is dead-lettered although it is stored': [
        "result.at === 'rejected' && (await this.#findMissing(pass, [index])).length > 0",
        "result.at === 'rejected'",
      ],
      'a row that is rejected alone is dead-lettered although it is stored': [
        'await this.#findMissing(pass, [...errors.keys()])',
        'errors.keys()',
      ],
      'a row is sent alone before this is persisted': [
        "(!(await this.#persist(pass, listName('alone', group)))) return",
        "(!pass.persisted(listName('alone', group))) return",
      ],
      'halves are sent before this is persisted': [
        '      if (!(await this.#persist(pass, HALVED))) return\n',
        '',
      ],
      'rows are set apart although halves may be in flight': [
        'pass.splits.has(HALVED) ? missing.filter((index) => pass.alone.has(index)) : missing',
        'missing',
      ],
      'dead letters of another repair are stored without a lookup': [
        'tokenOfList(pass, name), true)',
        'tokenOfList(pass, name), false)',
      ],
      'a row that is rejected with an unknown code is dropped': [
        'if (!isKnown && !pass.isLast) pass.suspects += 1',
        'if (!isKnown && !pass.isLast) pass.suspects += 0',
      ],
      'one lost token of a range is one too many': ['const LOST_TOKENS_MAX = 3', 'const LOST_TOKENS_MAX = 0'],
    },
    'apps/worker/src/split-pass.ts': {
      'a row that is persisted as rejected is inserted again': [
        '.filter((index) => !this.rejected.has(index))',
        '',
      ],
      'a row that is sent alone is part of a range': ['.filter((index) => !this.alone.has(index))', ''],
    },
    'packages/clickhouse/src/row-inserter.ts': {
      'an attempt to consume a token that got no answer is forgotten': [
        'await this.#insert(frames, token, onUnanswered, ',
        'await this.#insert(frames, token, () => undefined, ',
      ],
    },
    'packages/clickhouse/src/insert-once.ts': {
      'rows are not looked up before they are sent again': [
        '    let missing = await this.#target.findMissing()',
        '    let missing = this.#target.all',
      ],
      'a token without rows counts as stored': [
        "    if (areTokensAtomic) return 'stored'",
        "    if (areTokensAtomic || true) return 'stored'",
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
        "run({ kind: 'lookup', startedMs: clock.nowMs() }, () => storedRows.find(frames))",
        'storedRows.find(frames)',
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
