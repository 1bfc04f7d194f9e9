import { ClickHouseError, RowInserter } from '@sluice/clickhouse'
import type { BatchRecord, HeldChunk } from '@sluice/queue'
import { compressRows } from '@sluice/rows'
import { createLogger } from '@sluice/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { BatchDelivery, BrokenBatchError } from '../src/batch-delivery.ts'
import type { Batch } from '../src/batch-splitter.ts'
import { workerLimits } from '../src/limits.ts'
import { Retrier } from '../src/retrier.ts'
import { Semaphore } from '../src/semaphore.ts'

// One test per transition of the table above class BatchDelivery. A test sets what Redis and ClickHouse answer, and compares the steps.

const TRUSTED_MS = 1_000
const chunk: HeldChunk = { id: 'a', rows: 1, bytes: 4, frame: compressRows('row\n') }
const claimed: BatchRecord = { state: 'claimed', members: ['a'], splits: new Set() }
const split: BatchRecord = { ...claimed, splits: new Set(['all']) }
const confirmed: BatchRecord = { ...claimed, state: 'confirmed' }
const rejection = new ClickHouseError({ message: 'bad row', code: '117', type: 'INCORRECT_DATA' })

/** The steps in order. */
let steps: string[]
/** The batch that the claim assigns the chunk to: `own` is the new batch, `other` is a batch of another worker. */
let owner: 'own' | 'other'
/** The answer to each read of the record, in order. Afterwards the record is released. */
let records: BatchRecord[]
/** The chunk's job, while it is in the queue. */
let job: HeldChunk | undefined
/** The errors of the first inserts. */
let insertErrors: Error[]
/** The errors of the first confirmations. */
let confirmErrors: Error[]
/** The answers to the first confirmations without an error. Afterwards each one is persisted. */
let confirmations: boolean[]
/** Whether ClickHouse stores a token and its rows in one step. If not, the rows are looked up after an insert, and never found. */
let areTokensAtomic: boolean
/** The splits that the insert by parts takes into account; undefined if another worker has confirmed the batch. */
let partsResult: ReadonlySet<string> | undefined
/** The batch that was inserted by parts. */
let inParts: Batch | undefined
/** How long the claim takes. */
let claimMs: number

beforeEach(() => {
  steps = []
  owner = 'own'
  records = []
  job = chunk
  insertErrors = []
  confirmErrors = []
  confirmations = []
  areTokensAtomic = true
  partsResult = new Set(['all'])
  inParts = undefined
  claimMs = 0
})

function step(name: string, errors: Error[] = []): void {
  steps.push(name)
  const error = errors.shift()
  if (error !== undefined) throw error
}

/** Delivers the chunk. @returns the steps */
async function deliver(): Promise<string[]> {
  const { signal } = new AbortController()
  const logger = createLogger('test', 'silent')
  let nowMs = 0
  const monotonicMs = (): number => nowMs
  const delivery = new BatchDelivery({
    ledger: {
      claim: async (_batchId, ids) => {
        step('claim')
        nowMs += claimMs
        return ids.map(() => owner)
      },
      read: async (batchId) => {
        step(`read ${batchId}`)
        return records.shift()
      },
      confirm: async (batchId, ids, splits) => {
        step(`confirm ${batchId}: ${ids.join()}, splits: ${splits}`, confirmErrors)
        return confirmations.shift() ?? true
      },
      release: async () => step('release'),
    },
    rowInserter: new RowInserter({
      frameInserter: { insert: async (_frames, token) => step(`insert ${token}`, insertErrors) },
      storedRows: {
        find: async () => {
          step('look up')
          return new Set()
        },
      },
      areTokensAtomic,
      sleep: () => Promise.resolve(),
      beforeAttempt: () => Promise.resolve(),
      onTokenWithoutRows: () => undefined,
      lingerMaxMs: workerLimits.insertLingerMaxMs,
      monotonicMs,
    }),
    insertPermits: new Semaphore(1, signal),
    recoveryPermits: new Semaphore(1, signal),
    splitter: {
      insertByParts: async (batch) => {
        step(`insert ${batch.id} by parts`)
        inParts = batch
        return partsResult
      },
    },
    retrier: new Retrier(logger, signal, () => Promise.resolve()),
    logger,
    loadChunk: async (id) => {
      step(`load ${id}`)
      return job
    },
    makeId: () => 'own',
    monotonicMs,
    ownershipTrustedMs: TRUSTED_MS,
  })
  const outcomes = await delivery.deliver([chunk])
  await outcomes.get('a')
  return steps
}

describe('a claimed batch', () => {
  it('is stored when ClickHouse has inserted it as a whole', async () => {
    expect(await deliver()).toEqual(['claim', 'insert own', 'confirm own: a, splits: 0'])
  })

  it('is stored when another worker has confirmed it before this one sends it', async () => {
    owner = 'other'
    records = [claimed, confirmed]
    expect(await deliver()).toEqual([
      'claim',
      'read other',
      'load a',
      'read other',
      'confirm other: a, splits: 0',
    ])
  })

  it('is rejected when ClickHouse rejects it as a whole', async () => {
    insertErrors = [rejection]
    expect(await deliver()).toEqual([
      'claim',
      'insert own',
      'insert own by parts',
      'confirm own: a, splits: 1',
    ])
    expect(inParts).toMatchObject({ chunks: [chunk], splits: new Set(), wasSent: false })
  })

  it('is rejected when ClickHouse has its token without its rows: it is not sent as a whole with another token', async () => {
    owner = 'other'
    areTokensAtomic = false
    records = [claimed, claimed]
    expect(await deliver()).toEqual([
      'claim',
      'read other',
      'load a',
      'read other',
      'look up',
      'insert other',
      'look up',
      'look up',
      'insert other by parts',
      'confirm other: a, splits: 1',
    ])
    expect(inParts).toMatchObject({ chunks: [chunk], splits: new Set(), wasSent: true })
  })

  it('is recovered when it is no longer certain that this worker owns it', async () => {
    claimMs = TRUSTED_MS + 1
    records = [claimed, claimed]
    expect(await deliver()).toEqual([
      'claim',
      'read own',
      'load a',
      'read own',
      'look up',
      'insert own',
      'confirm own: a, splits: 0',
    ])
  })

  it('is recovered when another worker has split it', async () => {
    owner = 'other'
    records = [claimed, split, split]
    expect(await deliver()).toEqual([
      'claim',
      'read other',
      'load a',
      'read other',
      'read other',
      'load a',
      'insert other by parts',
      'confirm other: a, splits: 1',
    ])
  })
})

describe('a batch that is recovered', () => {
  beforeEach(() => {
    owner = 'other'
  })

  it('is claimed when its record is claimed: its rows are looked up, and inserted as a whole', async () => {
    records = [claimed, claimed]
    expect(await deliver()).toEqual([
      'claim',
      'read other',
      'load a',
      'read other',
      'look up',
      'insert other',
      'confirm other: a, splits: 0',
    ])
  })

  it('is rejected when its record has a split: it is not inserted as a whole', async () => {
    records = [split]
    expect(await deliver()).toEqual([
      'claim',
      'read other',
      'load a',
      'insert other by parts',
      'confirm other: a, splits: 1',
    ])
    expect(inParts).toMatchObject({ chunks: [chunk], splits: new Set(['all']), wasSent: true })
  })

  it('is done when its record is confirmed', async () => {
    records = [confirmed]
    expect(await deliver()).toEqual(['claim', 'read other'])
  })

  it('is done when its record is released', async () => {
    records = []
    expect(await deliver()).toEqual(['claim', 'read other'])
  })

  it('is done when another worker has confirmed it and completed its jobs since the record was read', async () => {
    records = [claimed, confirmed]
    job = undefined
    expect(await deliver()).toEqual(['claim', 'read other', 'load a', 'read other'])
  })

  it('is broken when its jobs are not in the queue and it is not confirmed', async () => {
    records = [claimed, claimed]
    job = undefined
    await expect(deliver()).rejects.toThrow(BrokenBatchError)
    expect(steps).toEqual(['claim', 'read other', 'load a', 'read other'])
  })
})

describe('a rejected batch', () => {
  beforeEach(() => {
    insertErrors = [rejection]
  })

  it('is stored when its parts are inserted, and is confirmed with the splits of that insert', async () => {
    partsResult = new Set(['all', '0-5', '5-10'])
    expect(await deliver()).toEqual([
      'claim',
      'insert own',
      'insert own by parts',
      'confirm own: a, splits: 3',
    ])
  })

  it('is done when another worker has confirmed it', async () => {
    partsResult = undefined
    expect(await deliver()).toEqual(['claim', 'insert own', 'insert own by parts'])
  })
})

describe('a stored batch', () => {
  it('is done when the confirmation is persisted, and is not inserted again until then', async () => {
    confirmErrors = [new Error('connection refused'), new Error('connection reset')]
    expect(await deliver()).toEqual([
      'claim',
      'insert own',
      'confirm own: a, splits: 0',
      'confirm own: a, splits: 0',
      'confirm own: a, splits: 0',
    ])
  })

  it('is recovered when another worker has split it: its rows are inserted by parts', async () => {
    confirmations = [false]
    records = [split]
    expect(await deliver()).toEqual([
      'claim',
      'insert own',
      'confirm own: a, splits: 0',
      'read own',
      'load a',
      'insert own by parts',
      'confirm own: a, splits: 1',
    ])
    expect(inParts).toMatchObject({ chunks: [chunk], splits: new Set(['all']), wasSent: true })
  })

  it('is recovered as often as another worker splits more of it', async () => {
    owner = 'other'
    confirmations = [false, false]
    const splitFurther: BatchRecord = { ...split, splits: new Set(['all', '0-5']) }
    records = [split, splitFurther, splitFurther]
    expect(await deliver()).toEqual([
      'claim',
      ...Array.from({ length: 3 }, () => [
        'read other',
        'load a',
        'insert other by parts',
        'confirm other: a, splits: 1',
      ]).flat(),
    ])
    expect(inParts).toMatchObject({ splits: splitFurther.splits })
  })

  it('is done when another worker has split and confirmed it', async () => {
    confirmations = [false]
    records = [confirmed]
    expect(await deliver()).toEqual(['claim', 'insert own', 'confirm own: a, splits: 0', 'read own'])
  })
})
