import { ClickHouseError } from '@clickhouse/client'
import { compressRows } from '@sluice/rows'
import { beforeEach, expect, it } from 'vitest'
import { classifyInsertError } from '../src/insert-errors.ts'
import { REPLACEMENTS_MAX } from '../src/insert-once.ts'
import { queryIds } from '../src/query-watch.ts'
import { RowInserter } from '../src/row-inserter.ts'
import { insertOptions } from './test-database.ts'

const frame = compressRows('p\t\t\trow\n')

/** What inserts throw. */
let failure: Error
/** What lookups throw. */
let lookupFailure: Error | undefined
let isRunning: boolean
let isPermitted: boolean
let log: string[]
/** How often the caller was told that an insert got no response. */
let unanswered: number

beforeEach(() => {
  failure = new ClickHouseError({ message: 'm', code: '27' })
  lookupFailure = undefined
  isRunning = false
  isPermitted = true
  log = []
  unanswered = 0
})

const rowInserter = new RowInserter({
  frameInserter: {
    insert: async (_frames, token, queryId) => {
      log.push(queryId === undefined ? `insert ${token}` : `insert ${token} as ${queryId}`)
      throw failure
    },
    isRunning: async (token) => {
      log.push(`ask ${token}`)
      return isRunning
    },
  },
  storedRows: {
    find: async (rows) => {
      log.push(`look up ${Array.from(rows, ({ id }) => id).join(' ')}`.trim())
      if (lookupFailure !== undefined) throw lookupFailure
      return new Set()
    },
  },
  ...insertOptions,
  beforeAttempt: async () => {
    if (!isPermitted) throw new Error('not now')
  },
})

const onUnanswered = (): void => void (unanswered += 1)
// A frame that cannot be decompressed is not looked up.
const sentBefore = (): Promise<unknown> =>
  rowInserter.prepare([Buffer.from('not zstd'), frame], 't', true).run()
const neverSent = (): Promise<unknown> => rowInserter.prepare([frame], 't', false).run()
const single = (): Promise<unknown> =>
  rowInserter.prepare([frame], 't', true, onUnanswered, REPLACEMENTS_MAX).run()
// It has another query id, so that it does not wait for the insert with this token.
const consumption = (): Promise<unknown> =>
  rowInserter.send([frame], 't', onUnanswered, queryIds.consumedToken('t'))

it.each([
  ['an insert that was sent before', sentBefore, ['ask t', 'look up row', 'insert t']],
  ['an insert that was never sent', neverSent, ['insert t']],
  ['an insert of a single row', single, ['ask t', 'look up row', 'insert t']],
  ['a consumption of a token', consumption, [`insert t as ${queryIds.consumedToken('t')}`]],
])('%s has these steps, and none while attempts are not permitted', async (_what, attempt, steps) => {
  await expect(attempt()).rejects.toBe(failure)
  expect(log).toEqual(steps)
  isPermitted = false
  await expect(attempt()).rejects.toThrow('not now')
  await expect(rowInserter.findStored([])).rejects.toThrow('not now')
  expect(log).toEqual(steps)
})

it.each([
  ['got no response', new Error('Timeout error.'), 1],
  ['is still running', new ClickHouseError({ message: 'm', code: '216' }), 1],
  ['was rejected because of the row', new ClickHouseError({ message: 'm', code: '27' }), 0],
  ['was rejected for an unknown reason', new ClickHouseError({ message: 'm', code: '49' }), 0],
])('the caller learns whether an attempt that %s may still commit', async (_what, error, times) => {
  failure = error
  for (const attempt of [single, consumption]) await expect(attempt()).rejects.toBe(error)
  expect(unanswered).toBe(2 * times)
})

it.each([sentBefore, single])(
  'nothing is looked up or sent while an earlier attempt is running',
  async (attempt) => {
    isRunning = true
    const error: unknown = await attempt().catch((reason: unknown) => reason)
    expect(error).toMatchObject({ name: 'StillRunningError' })
    expect(classifyInsertError(error).failure).toBe('transient')
    expect(log).toEqual(['ask t'])
  },
)

it('a lookup that ClickHouse rejects says nothing about the rows, whatever the code', async () => {
  lookupFailure = new ClickHouseError({ message: 'm', code: '158' })
  for (const attempt of [sentBefore, single]) {
    const error: unknown = await attempt().catch((reason: unknown) => reason)
    expect(classifyInsertError(error).failure).toBe('transient')
  }
  expect(log).toEqual(['ask t', 'look up row', 'ask t', 'look up row'])
})
