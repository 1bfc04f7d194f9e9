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
let partsResult: 'stored' | 'confirmed'
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
  partsResult = 'stored'
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
      confirm: async (batchId, ids) => step(`confirm ${batchId}: ${ids.join()}`, confirmErrors),
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
      areTokensAtomic: true,
      sleep: () => Promise.resolve(),
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
    expect(await deliver()).toEqual(['claim', 'insert own', 'confirm own: a'])
  })

  it('is stored when another worker has confirmed it before this one sends it', async () => {
    owner = 'other'
    records = [claimed, confirmed]
    expect(await deliver()).toEqual(['claim', 'read other', 'load a', 'read other', 'confirm other: a'])
  })

  it('is rejected when ClickHouse rejects it as a whole', async () => {
    insertErrors = [rejection]
    expect(await deliver()).toEqual(['claim', 'insert own', 'insert own by parts', 'confirm own: a'])
    expect(inParts).toMatchObject({ chunks: [chunk], splits: new Set(), history: { sent: false } })
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
      'confirm own: a',
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
      'confirm other: a',
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
      'confirm other: a',
    ])
  })

  it('is rejected when its record has a split: it is not inserted as a whole', async () => {
    records = [split]
    expect(await deliver()).toEqual([
      'claim',
      'read other',
      'load a',
      'insert other by parts',
      'confirm other: a',
    ])
    expect(inParts).toMatchObject({ chunks: [chunk], splits: new Set(['all']), history: { sent: true } })
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

  it('is stored when its parts are inserted', async () => {
    partsResult = 'stored'
    expect(await deliver()).toEqual(['claim', 'insert own', 'insert own by parts', 'confirm own: a'])
  })

  it('is done when another worker has confirmed it', async () => {
    partsResult = 'confirmed'
    expect(await deliver()).toEqual(['claim', 'insert own', 'insert own by parts'])
  })
})

describe('a stored batch', () => {
  it('is done when the confirmation is persisted, and is not inserted again until then', async () => {
    confirmErrors = [new Error('connection refused'), new Error('connection reset')]
    expect(await deliver()).toEqual([
      'claim',
      'insert own',
      'confirm own: a',
      'confirm own: a',
      'confirm own: a',
    ])
  })
})
