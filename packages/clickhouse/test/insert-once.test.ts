import { describe, expect, it } from 'vitest'
import { InsertOnce, type InsertTarget } from '../src/insert-once.ts'

/** The items of a test, and a log of what is sent. */
interface Setup {
  readonly target: InsertTarget<number>
  readonly log: string[]
  /** The number of missing items that the next lookups return. */
  readonly lookups: number[]
}

function setUp(lookups: readonly number[]): Setup {
  const setup: Setup = {
    log: [],
    lookups: [...lookups],
    target: {
      all: [0, 1, 2],
      findMissing: async () => Array.from({ length: setup.lookups.shift() ?? 0 }, (_, i) => i),
      insert: async (items, token) => void setup.log.push(`${token}: ${items.length}`),
    },
  }
  return setup
}

function insertOnce({ target, log }: Setup, wasSent: boolean, areTokensAtomic: boolean): InsertOnce<number> {
  return new InsertOnce(target, 'token', wasSent, {
    areTokensAtomic,
    sleep: async (ms) => void log.push(`sleep ${ms}`),
    onTokenWithoutRows: (token, replacement) => void log.push(`${token} without rows ${replacement}`),
  })
}

/** The log and the result of one attempt for items that were sent before. */
async function retryWith(
  lookups: readonly number[],
  areTokensAtomic: boolean,
): Promise<{ readonly log: string[]; readonly isStored: boolean }> {
  const setup = setUp(lookups)
  const isStored = await insertOnce(setup, true, areTokensAtomic).run()
  expect(setup.lookups).toEqual([])
  return { log: setup.log, isStored }
}

describe('the first attempt', () => {
  it('inserts everything without a lookup', async () => {
    const setup = setUp([1])
    expect(await insertOnce(setup, false, false).run()).toBe(true)
    expect(setup.log).toEqual(['token: 3'])
    expect(setup.lookups).toEqual([1])
  })

  it('is followed by attempts that look up what is missing, even if it failed', async () => {
    const setup = setUp([2, 0, 0])
    let failures = 1
    const target: InsertTarget<number> = {
      ...setup.target,
      insert: async (items, token) => {
        await setup.target.insert(items, token)
        if (failures-- > 0) throw new Error('no answer')
      },
    }
    const attempt = insertOnce({ ...setup, target }, false, false)
    await expect(attempt.run()).rejects.toThrow('no answer')
    expect(await attempt.run()).toBe(true)
    expect(await attempt.run()).toBe(true)
    expect(setup.log).toEqual(['token: 3', 'token: 2'])
    expect(setup.lookups).toEqual([])
  })
})

describe('a later attempt', () => {
  it('sends nothing that is stored', async () => {
    expect(await retryWith([0], false)).toEqual({ log: [], isStored: true })
  })

  it('sends what is missing, and looks up whether it is stored', async () => {
    expect(await retryWith([2, 0], false)).toEqual({ log: ['token: 2'], isStored: true })
  })

  it('gives ClickHouse time before it sends items with a replacement token', async () => {
    expect((await retryWith([2, 2, 0], false)).log).toEqual(['token: 2', 'sleep 2000'])
    expect(await retryWith([2, 2, 1, 0], false)).toEqual({
      log: ['token: 2', 'sleep 2000', 'token without rows 1', 'token/again/1: 1'],
      isStored: true,
    })
  })

  it('does not look up again if a token and its rows are recorded in one step: another replica may lag', async () => {
    expect(await retryWith([2], true)).toEqual({ log: ['token: 2'], isStored: true })
  })

  it('gives up on items that are never found', async () => {
    const { log, isStored } = await retryWith([1, 1, 1, 1, 1, 1, 1, 1], false)
    expect(log.filter((line) => line.includes('again'))).toEqual([
      'token/again/1: 1',
      'token/again/2: 1',
      'token/again/3: 1',
    ])
    expect(isStored).toBe(false)
  })
})
