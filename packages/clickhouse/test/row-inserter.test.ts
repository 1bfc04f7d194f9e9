import { ClickHouseError } from '@clickhouse/client'
import { compressRows } from '@sluice/rows'
import { beforeEach, describe, expect, it } from 'vitest'
import { classifyInsertError } from '../src/insert-errors.ts'
import { queryIds } from '../src/query-watch.ts'
import { RowInserter } from '../src/row-inserter.ts'
import { insertOptions } from './test-database.ts'

const frame = compressRows('row\n')

/** What the next inserts throw. */
let outcomes: Error[]
let isRunning: boolean
let isPermitted: boolean
let log: string[]
let rowInserter: RowInserter

beforeEach(() => {
  outcomes = []
  isRunning = false
  isPermitted = true
  log = []
  rowInserter = new RowInserter({
    frameInserter: {
      insert: async (_frames, token, queryId) => {
        log.push(queryId === undefined ? `insert ${token}` : `insert ${token} as ${queryId}`)
        throw outcomes.shift() ?? new Error('no more outcomes')
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
    ...insertOptions,
    beforeAttempt: async () => {
      if (!isPermitted) throw new Error('not now')
    },
  })
})

const clickhouseError = (code: string): ClickHouseError => new ClickHouseError({ message: 'm', code })
const [POISON, UNKNOWN, RUNNING] = [clickhouseError('27'), clickhouseError('49'), clickhouseError('216')]
const NO_ANSWER = new Error('Timeout error.')

/** Makes one attempt that fails. @returns how often the caller was told that it got no response */
async function unanswered(
  error: Error,
  attempt: (onUnanswered: () => void) => Promise<unknown>,
): Promise<number> {
  outcomes = [error]
  let count = 0
  await expect(attempt(() => (count += 1))).rejects.toBe(error)
  return count
}
describe('an attempt to insert a single row', () => {
  const attempts: readonly [string, (onUnanswered: () => void) => Promise<unknown>][] = [
    ['with its own token', (onUnanswered) => rowInserter.prepareSingle(frame, 't', onUnanswered).run()],
    ['that consumes a token', (onUnanswered) => rowInserter.consumeToken([frame], 't', onUnanswered)],
  ]

  it.each(attempts)(
    '%s is reported if it got no response, since it may still commit',
    async (_which, attempt) => {
      expect(await unanswered(NO_ANSWER, attempt)).toBe(1)
      expect(await unanswered(RUNNING, attempt)).toBe(1)
    },
  )

  it.each(attempts)('%s is not reported if ClickHouse rejects the row', async (_which, attempt) => {
    expect(await unanswered(POISON, attempt)).toBe(0)
    expect(await unanswered(UNKNOWN, attempt)).toBe(0)
  })

  it('with its own token is asked about and looked up before it is sent', async () => {
    expect(
      await unanswered(POISON, (onUnanswered) => rowInserter.prepareSingle(frame, 't', onUnanswered).run()),
    ).toBe(0)
    expect(log).toEqual(['ask t', 'look up', 'insert t'])
  })

  it('that consumes a token has another query id, and is neither asked about nor looked up', async () => {
    expect(
      await unanswered(POISON, (onUnanswered) => rowInserter.consumeToken([frame], 't', onUnanswered)),
    ).toBe(0)
    expect(log).toEqual([`insert t as ${queryIds.consumedToken('t')}`])
  })
})

describe('an insert that was sent before', () => {
  it('is neither looked up nor sent again while an earlier attempt is running', async () => {
    isRunning = true
    for (const insert of [
      rowInserter.prepare([frame], 't', true),
      rowInserter.prepareSingle(frame, 't', () => undefined),
    ]) {
      const error: unknown = await insert.run().catch((reason: unknown) => reason)
      expect(error).toMatchObject({ name: 'StillRunningError' })
      expect(classifyInsertError(error).failure).toBe('transient')
    }
    expect(log).toEqual(['ask t', 'ask t'])
  })

  it('is asked about, looked up and sent, in this order', async () => {
    outcomes = [POISON]
    await expect(rowInserter.prepare([frame], 't', true).run()).rejects.toBe(POISON)
    expect(log).toEqual(['ask t', 'look up', 'insert t'])
  })
})

it('an insert that was never sent is not asked about', async () => {
  outcomes = [POISON]
  await expect(rowInserter.prepare([frame], 't', false).run()).rejects.toBe(POISON)
  expect(log).toEqual(['insert t'])
})

it('sends and looks up nothing while attempts are not permitted', async () => {
  isPermitted = false
  for (const attempt of [
    () => rowInserter.prepare([frame], 't', false).run(),
    () => rowInserter.prepareSingle(frame, 't', () => undefined).run(),
    () => rowInserter.consumeToken([frame], 't', () => undefined),
    () => rowInserter.findStored([frame]),
  ])
    await expect(attempt()).rejects.toThrow('not now')
  expect(log).toEqual([])
})
