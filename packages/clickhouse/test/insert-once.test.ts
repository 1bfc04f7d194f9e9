import { describe, expect, it } from 'vitest'
import { InsertOnce, type InsertResult, type InsertTarget, REPLACEMENTS_MAX } from '../src/insert-once.ts'

/** The items of a test, and a log of what is sent. */
interface Setup {
  readonly target: InsertTarget<number>
  readonly log: string[]
  /** The number of missing items that the next lookups return. */
  readonly lookups: number[]
  /** Runs before each attempt. */
  beforeAttempt: () => Promise<void>
}

function setUp(lookups: readonly number[]): Setup {
  const setup: Setup = {
    log: [],
    lookups: [...lookups],
    beforeAttempt: () => Promise.resolve(),
    target: {
      all: [0, 1, 2],
      findMissing: async () => {
        const length = setup.lookups.shift()
        if (length === undefined) throw new Error('another lookup')
        return Array.from({ length }, (_, i) => i)
      },
      insert: async (items, token) => void setup.log.push(`${token}: ${items.length}`),
    },
  }
  return setup
}

interface Options {
  readonly wasSent: boolean
  readonly replacementsMax?: number
  readonly areTokensAtomic?: boolean
}

function insertOnce(
  setup: Setup,
  { wasSent, replacementsMax = REPLACEMENTS_MAX, areTokensAtomic = false }: Options,
): InsertOnce<number> {
  const { target, log } = setup
  return new InsertOnce(
    target,
    'token',
    { wasSent, replacementsMax },
    {
      areTokensAtomic,
      sleep: async (ms) => void log.push(`sleep ${ms}`),
      beforeAttempt: () => setup.beforeAttempt(),
      onTokenWithoutRows: (token) => void log.push(`${token} without rows`),
    },
  )
}

describe('the first attempt', () => {
  it('inserts everything without a lookup', async () => {
    const setup = setUp([1])
    expect(await insertOnce(setup, { wasSent: false }).run()).toBe('stored')
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
    const attempt = insertOnce({ ...setup, target }, { wasSent: false })
    await expect(attempt.run()).rejects.toThrow('no answer')
    expect(await attempt.run()).toBe('stored')
    expect(await attempt.run()).toBe('stored')
    expect(setup.log).toEqual(['token: 3', 'token: 2'])
    expect(setup.lookups).toEqual([])
  })
})

const forbid = (): Promise<never> => Promise.reject(new Error('not now'))

describe('an attempt that is not permitted', () => {
  it('sends nothing, and does not count as an attempt', async () => {
    const setup = setUp([])
    const insert = insertOnce(setup, { wasSent: false })
    setup.beforeAttempt = forbid
    await expect(insert.run()).rejects.toThrow('not now')
    expect(setup.log).toEqual([])
    setup.beforeAttempt = () => Promise.resolve()
    expect(await insert.run()).toBe('stored')
    expect(setup.log).toEqual(['token: 3'])
  })

  it('looks nothing up', async () => {
    const setup = setUp([0])
    setup.beforeAttempt = forbid
    await expect(insertOnce(setup, { wasSent: true }).run()).rejects.toThrow('not now')
    expect(setup.lookups).toEqual([0])
  })
})

const [WAIT, WITHOUT_ROWS] = ['sleep 2000', 'token without rows']

describe('a later attempt', () => {
  it.each<
    [what: string, options: Omit<Options, 'wasSent'>, lookups: number[], log: string[], result?: InsertResult]
  >([
    ['sends nothing that is stored', {}, [0], []],
    ['sends what is missing, and looks up whether it is stored', {}, [2, 0], ['token: 2']],
    ['gives ClickHouse time before it uses a replacement token', {}, [2, 2, 0], ['token: 2', WAIT]],
    [
      'sends what is still missing with a replacement token',
      {},
      [2, 2, 1, 0],
      ['token: 2', WAIT, WITHOUT_ROWS, 'token/again/1: 1'],
    ],
    [
      'does not look up again if a token and its rows are recorded in one step: another replica may lag',
      { areTokensAtomic: true },
      [2],
      ['token: 2'],
    ],
    [
      'sends only what is missing with a second replacement token, if ClickHouse has the first one without the rows',
      {},
      [3, 3, 2, 2, 1, 0],
      ['token: 3', WAIT, WITHOUT_ROWS, 'token/again/1: 2', WAIT, WITHOUT_ROWS, 'token/again/2: 1'],
    ],
    [
      'gives up on items that are never found',
      {},
      Array.from({ length: 9 }, () => 1),
      [
        'token: 1',
        ...[1, 2, 3].flatMap((n) => [WAIT, WITHOUT_ROWS, `token/again/${n}: 1`]),
        WAIT,
        WITHOUT_ROWS,
      ],
      'token-without-rows',
    ],
    [
      'sends nothing with a replacement token if none is allowed',
      { replacementsMax: 0 },
      [2, 2, 2],
      ['token: 2', WAIT, WITHOUT_ROWS],
      'token-without-rows',
    ],
    [
      'needs no replacement token for items that are found after a wait',
      { replacementsMax: 0 },
      [2, 2, 0],
      ['token: 2', WAIT],
    ],
  ])('%s', async (_what, options, lookups, log, result = 'stored') => {
    const setup = setUp(lookups)
    expect(await insertOnce(setup, { wasSent: true, ...options }).run()).toBe(result)
    expect(setup.lookups).toEqual([])
    expect(setup.log).toEqual(log)
  })
})
