import { ClickHouseError } from '@clickhouse/client'
import { compressRows } from '@sluice/rows'
import { beforeEach, describe, expect, it } from 'vitest'
import { classifyInsertError } from '../src/insert-errors.ts'
import { RowInserter } from '../src/row-inserter.ts'

const LINGER_MS = 120_000
const frame = compressRows('row\n')

let nowMs: number
/** What the next inserts throw, and how long they take. */
let outcomes: (readonly [error: Error, tookMs: number])[]
let isRunning: boolean
let log: string[]
let rowInserter: RowInserter

beforeEach(() => {
  nowMs = 0
  outcomes = []
  isRunning = false
  log = []
  rowInserter = new RowInserter({
    frameInserter: {
      insert: async (_frames, token) => {
        log.push(`insert ${token}`)
        const [error, tookMs] = outcomes.shift() ?? [new Error('no more outcomes'), 0]
        nowMs += tookMs
        throw error
      },
      isRunning: async (token) => {
        log.push(`ask ${token}`)
        return isRunning
      },
    },
    storedRows: {
      find: async () => {
        log.push('look up')
        return new Set()
      },
    },
    areTokensAtomic: false,
    sleep: async () => undefined,
    onTokenWithoutRows: () => undefined,
    lingerMaxMs: LINGER_MS,
    monotonicMs: () => nowMs,
  })
})

const clickhouseError = (code: string): ClickHouseError => new ClickHouseError({ message: 'm', code })
const [POISON, UNKNOWN, RUNNING] = [clickhouseError('27'), clickhouseError('49'), clickhouseError('216')]
const NO_ANSWER = new Error('Timeout error.')

const UNSETTLED = { name: 'UnsettledError' }

describe('a single row that ClickHouse rejects', () => {
  it.each([
    ['itself', POISON],
    ['with an unknown code', UNKNOWN],
  ])('%s is rejected at once if no earlier attempt may arrive', async (_why, error) => {
    outcomes = [[error, 0]]
    await expect(rowInserter.prepareSingle(frame, 't', 0).run()).rejects.toBe(error)
  })

  it.each([
    ['itself', POISON],
    ['with an unknown code', UNKNOWN],
  ])('%s is not yet rejected while an attempt without an answer may arrive', async (_why, error) => {
    const insert = rowInserter.prepareSingle(frame, 't', 0)
    outcomes = [
      [NO_ANSWER, 7_000],
      [error, 0],
      [error, 0],
      [error, 0],
    ]
    await expect(insert.run()).rejects.toBe(NO_ANSWER)
    await expect(insert.run()).rejects.toMatchObject(UNSETTLED)
    // Counted from when it was sent, and not from when it was given up.
    nowMs = LINGER_MS - 1
    await expect(insert.run()).rejects.toMatchObject(UNSETTLED)
    nowMs = LINGER_MS
    await expect(insert.run()).rejects.toBe(error)
  })

  it('is not yet rejected while an attempt of another worker may arrive', async () => {
    const insert = rowInserter.prepareSingle(frame, 't', 500)
    outcomes = [
      [POISON, 0],
      [POISON, 0],
    ]
    await expect(insert.run()).rejects.toMatchObject(UNSETTLED)
    nowMs = 500
    await expect(insert.run()).rejects.toBe(POISON)
  })

  it('is not rejected because an earlier attempt is still running', async () => {
    outcomes = [[RUNNING, 0]]
    const error: unknown = await rowInserter
      .prepareSingle(frame, 't', 0)
      .run()
      .catch((reason: unknown) => reason)
    expect(error).toBe(RUNNING)
    expect(classifyInsertError(error).failure).toBe('transient')
  })
})

describe('an insert that was sent before', () => {
  it('is neither looked up nor sent again while an earlier attempt is running', async () => {
    isRunning = true
    for (const insert of [
      rowInserter.prepare([frame], 't', true),
      rowInserter.prepareSingle(frame, 't', 0),
    ]) {
      const error: unknown = await insert.run().catch((reason: unknown) => reason)
      expect(error).toMatchObject({ name: 'StillRunningError' })
      expect(classifyInsertError(error).failure).toBe('transient')
    }
    expect(log).toEqual(['ask t', 'ask t'])
  })

  it('is asked about, looked up and sent, in this order', async () => {
    outcomes = [[POISON, 0]]
    await expect(rowInserter.prepare([frame], 't', true).run()).rejects.toBe(POISON)
    expect(log).toEqual(['ask t', 'look up', 'insert t'])
  })
})

it('an insert that was never sent is not asked about', async () => {
  outcomes = [[POISON, 0]]
  await expect(rowInserter.prepare([frame], 't', false).run()).rejects.toBe(POISON)
  expect(log).toEqual(['insert t'])
})
