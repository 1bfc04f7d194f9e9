import { beforeEach, expect, it } from 'vitest'
import { TokenWithoutRowsError } from '../src/insert-errors.ts'
import { InsertOnce, REPLACEMENTS_MAX } from '../src/insert-once.ts'

/** What is sent. */
let log: string[]
/** The number of missing items that the next lookups return. */
let lookups: number[]
/** How many inserts get no answer. */
let failures: number
let isPermitted: boolean

beforeEach(() => {
  log = []
  lookups = []
  failures = 0
  isPermitted = true
})

interface Options {
  readonly wasSent?: boolean
  readonly replacementsMax?: number
  readonly areTokensAtomic?: boolean
}

/** Of three items. */
function insertOnce(options: Options): InsertOnce<number> {
  const { wasSent = true, replacementsMax = REPLACEMENTS_MAX, areTokensAtomic = false } = options
  const target = {
    all: [0, 1, 2],
    token: 'token',
    wasSent,
    replacementsMax,
    findMissing: async () => {
      const length = lookups.shift()
      if (length === undefined) throw new Error('another lookup')
      return Array.from({ length }, (_, i) => i)
    },
    insert: async (items: readonly number[], token: string) => {
      log.push(`${token}: ${items.length}`)
      if (failures-- > 0) throw new Error('no answer')
    },
  }
  return new InsertOnce(target, {
    areTokensAtomic,
    sleep: async (ms) => void log.push(`sleep ${ms}`),
    beforeAttempt: async () => {
      if (!isPermitted) throw new Error('not now')
    },
  })
}

it('inserts everything at the first attempt, and looks up what is missing afterwards, even if that failed', async () => {
  lookups = [2, 0, 0]
  failures = 1
  const attempt = insertOnce({ wasSent: false })
  await expect(attempt.run()).rejects.toThrow('no answer')
  expect(lookups).toHaveLength(3)
  for (let times = 0; times < 2; times += 1) await attempt.run()
  expect(log).toEqual(['token: 3', 'token: 2'])
})

it('looks up and sends nothing at an attempt that is not permitted, which does not count', async () => {
  lookups = [0]
  const [first, later] = [insertOnce({ wasSent: false }), insertOnce({ wasSent: true })]
  isPermitted = false
  for (const insert of [first, later]) await expect(insert.run()).rejects.toThrow('not now')
  isPermitted = true
  await first.run()
  expect({ log, lookups }).toEqual({ log: ['token: 3'], lookups: [0] })
})

const WAIT = 'sleep 2000'

it.each<[what: string, options: Options, found: number[], sent: string[], isFound?: boolean]>([
  ['sends nothing that is stored', {}, [0], []],
  ['sends what is missing, and looks up whether it is stored', {}, [2, 0], ['token: 2']],
  ['gives ClickHouse time before it uses a replacement token', {}, [2, 2, 0], ['token: 2', WAIT]],
  // Another replica may lag.
  ['does not look up again if tokens are atomic', { areTokensAtomic: true }, [2], ['token: 2']],
  [
    'sends only what is missing with a second replacement token, if ClickHouse has the first one without the rows',
    {},
    [3, 3, 2, 2, 1, 0],
    ['token: 3', WAIT, 'token/again/1: 2', WAIT, 'token/again/2: 1'],
  ],
  [
    'gives up on items that are never found',
    {},
    Array.from({ length: 9 }, () => 1),
    ['token: 1', ...[1, 2, 3].flatMap((n) => [WAIT, `token/again/${n}: 1`]), WAIT],
    false,
  ],
  [
    'sends nothing with a replacement token if none is allowed',
    { replacementsMax: 0 },
    [2, 2, 2],
    ['token: 2', WAIT],
    false,
  ],
])('a later attempt %s', async (_what, options, found, sent, isFound = true) => {
  lookups = [...found]
  const error: unknown = await insertOnce(options)
    .run()
    .catch((rejection: unknown) => rejection)
  expect(error).toEqual(isFound ? undefined : new TokenWithoutRowsError('token'))
  expect({ lookups, log }).toEqual({ lookups: [], log: sent })
})
