import { type ClickHouseError, SETTLE_MS, type Suspects, TokenWithoutRowsError } from '@sluice/clickhouse'
import { rowColumns } from '@sluice/rows'
import { zstdCompressSync } from 'node:zlib'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Recovery } from '../src/batch.ts'
import { RequeueError } from '../src/retrier.ts'
import { workerLimits } from '../src/limits.ts'
import { insertErrors, letterOf, makeChunk, makeRow, makeTextChunk } from './support/chunks.ts'
import { batchOf, SplitterFixture } from './support/splitter-fixture.ts'

const { unknownRejectionMs, insertLingerMaxMs, repairStepMaxMs, giveUpMs } = workerLimits
/** The values in batch-splitter.ts. */
const [CONSUMING_ROWS_MAX, LOST_TOKENS_MAX, SUSPECTS_MAX] = [16, 3, 16]

/** The first attempt was at 0. */
const later = (lastMs: number): Pick<Recovery, 'suspension'> => ({ suspension: { firstMs: 0, lastMs } })

let fixture: SplitterFixture

beforeEach(() => {
  fixture = new SplitterFixture()
})

const range = (count: number, prefix = 'r'): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`)

/** ClickHouse does not respond to the next inserts that meet a condition. They commit after `commitAfterMs`, or never. */
function loseAnswers(
  count: number,
  isLost: (token: string, ids: readonly string[]) => boolean,
  commitAfterMs?: number,
) {
  let left = count
  fixture.beforeInsert = (token, ids, frames) => {
    if (left === 0 || !isLost(token, ids)) return
    left -= 1
    if (commitAfterMs !== undefined)
      fixture.clock.after(commitAfterMs, () => fixture.table.insert(frames, token))
    throw new Error('no answer')
  }
}

describe('the steps of a split', () => {
  it('are: persist it, consume its token, look up a half, send what is missing of it', async () => {
    fixture.table.faults.isShortOfMemory = true
    expect(await fixture.split(batchOf(['a', 'b', 'c', 'd']))).toMatchObject({
      at: 'stored',
      deadLettered: 0,
    })
    expect(fixture.calls).toEqual([
      'persist all',
      'check a b c d',
      'look up a b c d',
      'insert B: a',
      'persist halved',
      'look up a b',
      'insert B/0-2: b',
      'look up c d',
      'insert B/2-4: c d',
      'persist 2-4',
      'look up c d',
      'insert B/2-4: c',
      'look up c',
      'look up d',
      'insert B/3-4: d',
    ])
    expect(fixture.table.rows).toEqual(['a', 'b', 'c', 'd'])
    expect(fixture.repairs).toEqual(new Set([7]))
  })

  it('consume the token in each partition that lacks rows, with one of these rows', async () => {
    const rows = [makeRow('a', '2026-12-01'), makeRow('b', '2026-12-02'), makeRow('c', '2026-12-01')]
    const [stored, other] = [makeRow('s', '2026-12-01'), makeRow('t', '2026-12-03')]
    await fixture.insert([makeChunk('x', [stored, other]).frame], 'other')
    const chunk = makeChunk('chunk', [stored, other, ...rows])
    await fixture.split({ id: 'B', chunks: [chunk], splits: new Set(), repair: 7 })
    expect(fixture.only('insert B:')).toEqual(['insert B: a', 'insert B: b'])
    expect(fixture.table.rows.toSorted()).toEqual(['a', 'b', 'c', 's', 't'])
  })

  it('are the same for a batch of one row', async () => {
    expect(await fixture.split(batchOf(['a']))).toMatchObject({ at: 'stored', deadLettered: 0 })
    expect(fixture.calls).toEqual(['persist all', 'look up a', 'insert B: a', 'persist halved', 'look up a'])
  })

  it('send no range as a whole that any worker has split, even if ClickHouse would accept it now', async () => {
    expect(await fixture.split(batchOf(['a', 'b', 'c', 'd'], ['all', '2-4']))).toMatchObject({
      at: 'stored',
      deadLettered: 0,
    })
    expect(fixture.only('insert')).toEqual([
      'insert B: a',
      'insert B/0-2: b',
      'insert B/2-4: c',
      'insert B/3-4: d',
    ])
  })

  it('treat the rows of all chunks as one range', async () => {
    const chunks = [
      makeChunk(
        'x',
        ['a', 'b', 'c'].map((id) => makeRow(id)),
      ),
      makeChunk('y', [makeRow('d')]),
    ]
    await fixture.split({ id: 'B', chunks, splits: new Set(), repair: 7 })
    expect(fixture.only('insert')).toEqual(['insert B: a', 'insert B/0-2: b', 'insert B/2-4: c d'])
  })
})

describe('a batch that another worker has confirmed', () => {
  it('is left as it is: nothing is looked up, sent or dead-lettered', async () => {
    fixture.recordSplit = async () => false
    const broken = { ...makeChunk('x'), frame: Buffer.from('not zstd') }
    const batch = batchOf(['a', 'poison-b'])
    expect(await fixture.split({ ...batch, chunks: [broken, ...batch.chunks] })).toEqual({ at: 'confirmed' })
    expect(fixture.calls).toEqual(['persist all'])
  })

  it('in the middle of a split is not split further', async () => {
    fixture.recordSplit = async (name) => name === 'all' || name === 'halved'
    expect(await fixture.split(batchOf(['a', 'b', 'poison-c', 'd']))).toEqual({ at: 'confirmed' })
    expect(fixture.calls.slice(-1)).toEqual(['persist 2-4'])
    expect(fixture.deadLetters).toEqual([])
  })
})

it('fails if Redis does not persist a split in time, and does not keep its slot', async () => {
  fixture.recordSplit = () => new Promise(() => undefined)
  expect(await fixture.split(batchOf(['a', 'b']))).toMatchObject({ at: 'waiting' })
  expect(fixture.clock.nowMs()).toBe(repairStepMaxMs)
  expect(fixture.calls).toEqual(['persist all'])
})

describe('a row that ClickHouse rejects', () => {
  it('is dead-lettered alone, and its neighbours are inserted', async () => {
    const ids = [...range(7, 'a'), 'poison-b', ...range(8, 'c'), 'poison-d', 'e', 'poison-f']
    expect(await fixture.split(batchOf(ids))).toMatchObject({ at: 'stored' })
    expect(fixture.deadLetters.map(({ text }) => text)).toEqual(
      ['poison-b', 'poison-d', 'poison-f'].map((id) => letterOf(makeRow(id))),
    )
    expect(fixture.table.rows).toEqual(ids.filter((id) => !id.startsWith('poison')))
  })

  it('has a dead letter with the error, and the row in human-readable form if it is complete', async () => {
    const columns = rowColumns.map((name) =>
      name === 'id' ? 'poison-a' : name === 'expires_on' ? '2026-12-01' : name,
    )
    const full = makeTextChunk('x', [`${columns.join('\t')}\n`, makeRow('poison-b')])
    await fixture.split({ id: 'B', chunks: [full], splits: new Set(), repair: 7 })
    expect(fixture.deadLetters).toEqual([
      {
        code: 'INCORRECT_DATA',
        reason: 'INCORRECT_DATA',
        text: expect.stringContaining('"id":"poison-a"'),
      },
      { code: 'INCORRECT_DATA', reason: 'INCORRECT_DATA', text: makeRow('poison-b').trimEnd() },
    ])
    expect(fixture.only('dead-letter')).toEqual(['dead-letter B/0-1', 'dead-letter B/1-2'])
    expect(fixture.errors.mock.calls).toEqual([
      [{ code: 'INCORRECT_DATA', token: 'B/0-1', letters: 1 }, 'rows dead-lettered'],
      [{ code: 'INCORRECT_DATA', token: 'B/1-2', letters: 1 }, 'rows dead-lettered'],
    ])
  })

  it('has one dead letter, even if its response is lost', async () => {
    let answers = 0
    fixture.beforeDeadLetter = () => {
      answers += 1
      if (answers === 1) throw new Error('no answer')
    }
    await fixture.split(batchOf(['a', 'poison-b']))
    expect(fixture.only('dead-letter')).toHaveLength(2)
    expect(fixture.deadLetters).toHaveLength(1)
  })

  it('is a failed job if its dead letter is not found after it was stored', async () => {
    fixture = new SplitterFixture({ areTokensAtomic: false })
    fixture.isVisible = false
    await expect(fixture.split(batchOf(['poison-a'], ['all', '0-1']))).rejects.toThrow(
      new TokenWithoutRowsError('B/0-1'),
    )
  })

  it('is not inserted again once it is persisted as rejected, even if the table is changed', async () => {
    fixture.table.faults.acceptsAll = true
    const batch = batchOf(['a', 'poison-b', 'c'])
    const splits = new Set(['all', '1-3', '1-2'])
    expect(await fixture.split({ ...batch, splits })).toMatchObject({ at: 'stored', deadLettered: 1 })
    expect(fixture.table.rows.toSorted()).toEqual(['a', 'c'])
    expect(fixture.deadLetters).toMatchObject([{ code: 'REJECTED' }])
  })

  it('is persisted as rejected before its dead letter is stored', async () => {
    await fixture.split(batchOf(['a', 'poison-b']))
    const first = fixture.calls.find((call) => call === 'persist 1-2' || call.startsWith('dead-letter'))
    expect(first).toBe('persist 1-2')
  })

  it('is not dead-lettered if ClickHouse has stored it before it reported the error', async () => {
    fixture.table.faults.storesRejected = true
    const failures: unknown[] = []
    fixture.events.on('stored despite error', (error) => failures.push(error))
    const rejection = insertErrors.poison
    for (const splits of [[], [], ['all']]) {
      expect(await fixture.split(batchOf(['a', 'poison-b'], splits), { rejection })).toMatchObject({
        at: 'stored',
      })
      expect(fixture.table.rows).toEqual(['a', 'poison-b'])
    }
    // Of the second attempt, which sends nothing, and knows why the whole batch was rejected.
    expect(failures).toEqual([rejection])
    expect(fixture.deadLetters).toEqual([])
  })

  it('is not dead-lettered while an attempt of another worker may still commit', async () => {
    const earlier = { unsettledUntilMs: 500 }
    const batch = batchOf(['a', 'poison-b'])
    await fixture.clock.pass(499)
    const result = await fixture.split(batch, earlier)
    const suspension = { firstMs: 499, lastMs: 499 }
    expect(result).toMatchObject({ at: 'suspended', recovery: { unsettledUntilMs: 500, suspension } })
    expect(fixture.deadLetters).toEqual([])
    expect(fixture.table.rows).toEqual(['a'])
    await fixture.clock.pass(1)
    // The whole batch, and the rejected row.
    expect(await fixture.split(batch, earlier)).toMatchObject({ at: 'stored', deadLettered: 1 })
    expect(fixture.deadLetters).toHaveLength(1)
  })

  it.each([
    ['the row', 'B/1-2'],
    ['the consumption of a token', 'B'],
  ])(
    'is not dead-lettered after %s got no response, until that attempt can no longer commit',
    async (_what, lost) => {
      loseAnswers(1, (token) => token === lost)
      const batch = batchOf(['a', 'poison-b'])
      const result = await fixture.split(batch)
      expect(result).toMatchObject({
        at: 'suspended',
        recovery: { unsettledUntilMs: insertLingerMaxMs },
      })
      if (result.at !== 'suspended') return
      await fixture.clock.pass(insertLingerMaxMs - fixture.clock.nowMs() - 1)
      expect(await fixture.split(batch, result.recovery)).toMatchObject({ at: 'suspended' })
      await fixture.clock.pass(1)
      expect(await fixture.split(batch, result.recovery)).toMatchObject({ at: 'stored' })
      expect(fixture.deadLetters).toHaveLength(1)
    },
  )

  it('is settled by an attempt of the whole that got no response, since its parts have their own tokens', async () => {
    loseAnswers(1, (token) => token === 'B/0-2')
    expect(await fixture.split(batchOf(['a', 'b', 'poison-c']))).toMatchObject({ at: 'stored' })
  })
})

describe('a row that is too big for the memory of ClickHouse', () => {
  it('is retried until there is memory, and never dead-lettered', async () => {
    fixture.beforeInsert = (_token, ids) => {
      if (ids.includes('b') && fixture.clock.nowMs() < 60_000) throw insertErrors.too_big
    }
    expect(await fixture.split(batchOf(['a', 'b']))).toMatchObject({ at: 'stored' })
    expect(fixture.deadLetters).toEqual([])
    expect(fixture.table.rows).toEqual(['a', 'b'])
  })
})

describe('rows that ClickHouse rejects with an unknown code', () => {
  const batch = batchOf(['a', 'b', 'unknown-c', 'd'])

  it('are not dead-lettered, and all other rows are stored', async () => {
    await fixture.clock.pass(7)
    expect(await fixture.split(batch)).toMatchObject({
      at: 'suspended',
      recovery: { unsettledUntilMs: 0, suspension: { firstMs: 7, lastMs: 7 } },
    })
    expect(fixture.table.rows).toEqual(['a', 'b', 'd'])
    expect(fixture.deadLetters).toEqual([])
  })

  it('are known since the first attempt', async () => {
    await fixture.clock.pass(20_000)
    expect(await fixture.split(batch, later(10_000))).toMatchObject({
      at: 'suspended',
      recovery: later(20_000),
    })
  })

  it.each([
    ['before their time is over', unknownRejectionMs - 1, unknownRejectionMs - 1],
    ['if ClickHouse has accepted no row since the last attempt', unknownRejectionMs, unknownRejectionMs - 2],
  ])('are not dead-lettered %s', async (_when, startMs, succeededAtMs) => {
    await fixture.clock.pass(succeededAtMs)
    fixture.otherInsert()
    await fixture.clock.pass(startMs - succeededAtMs)
    expect(await fixture.split(batch, later(unknownRejectionMs - 1))).toMatchObject({ at: 'suspended' })
    expect(fixture.deadLetters).toEqual([])
  })

  it('are dead-lettered when their time is over, and ClickHouse has accepted rows since the last attempt', async () => {
    await fixture.clock.pass(unknownRejectionMs - 1)
    fixture.otherInsert()
    await fixture.clock.pass(1)
    expect(await fixture.split(batch, later(unknownRejectionMs - 1))).toMatchObject({ at: 'stored' })
    expect(fixture.deadLetters).toMatchObject([{ code: 'NEW_CODE' }])
  })

  it('are not dead-lettered while an earlier attempt may still commit', async () => {
    await fixture.clock.pass(unknownRejectionMs)
    fixture.otherInsert()
    const earlier = { ...later(0), unsettledUntilMs: unknownRejectionMs + 1 }
    expect(await fixture.split(batch, earlier)).toMatchObject({ at: 'suspended' })
    expect(fixture.deadLetters).toEqual([])
  })

  it('do not consume a token, and no part is sent before a token is consumed', async () => {
    fixture.table.faults.isTableBroken = true
    expect(await fixture.split(batchOf(range(40)))).toMatchObject({ at: 'suspended' })
    expect(fixture.only('insert')).toEqual(range(CONSUMING_ROWS_MAX).map((id) => `insert B: ${id}`))
    expect(fixture.deadLetters).toEqual([])
  })

  it('in one partition keep back the parts, even if the token is consumed in the others', async () => {
    const rows = [makeRow('unknown-a', '2026-12-01'), makeRow('b', '2026-12-02'), makeRow('c', '2026-12-02')]
    const chunks = [makeChunk('x', rows)]
    expect(await fixture.split({ id: 'B', chunks, splits: new Set(), repair: 7 })).toMatchObject({
      at: 'suspended',
    })
    expect(fixture.only('insert')).toEqual(['insert B: unknown-a', 'insert B: b'])
  })

  it('do not keep back the parts if another row consumes the token', async () => {
    expect(await fixture.split(batchOf(['unknown-a', 'b', 'poison-c', 'd']))).toMatchObject({
      at: 'suspended',
    })
    expect(fixture.table.rows).toEqual(['b', 'd'])
    expect(fixture.deadLetters).toHaveLength(1)
  })

  it('keep back the parts although the other rows are rejected for good', async () => {
    expect(await fixture.split(batchOf(['unknown-a', 'poison-b']))).toMatchObject({ at: 'suspended' })
    expect(fixture.only('insert')).toEqual(['insert B: unknown-a', 'insert B: poison-b'])
    expect(fixture.deadLetters).toEqual([])
  })

  it('do not keep back the parts in the attempt that dead-letters them', async () => {
    await fixture.clock.pass(unknownRejectionMs)
    fixture.otherInsert()
    expect(await fixture.split(batchOf(['unknown-a', 'unknown-b']), later(0))).toMatchObject({ at: 'stored' })
    expect(fixture.deadLetters).toHaveLength(2)
  })

  it('end the attempt after some of them, if ClickHouse accepts no row at all', async () => {
    expect(await fixture.split(batchOf(suspects(SUSPECTS_MAX + 4)))).toMatchObject({ at: 'suspended' })
    const tried = (id: string): boolean => fixture.calls.some((call) => call.endsWith(` ${id}`))
    expect(tried(`unknown-${SUSPECTS_MAX - 1}`)).toBe(true)
    expect(['poison-16-0', 'poison-19-0', 'unknown-16', 'unknown-19'].filter(tried)).toEqual([])
  })

  it('do not end the attempt if ClickHouse has accepted a row of any batch meanwhile', async () => {
    fixture.beforeLookup = () => {
      fixture.beforeLookup = () => undefined
      fixture.otherInsert()
    }
    expect(await fixture.split(batchOf(suspects(SUSPECTS_MAX + 4)))).toMatchObject({ at: 'suspended' })
    expect(fixture.calls.some((call) => call.endsWith(' unknown-19'))).toBe(true)
  })
})

/** Ranges of rows. Each has one row with an unknown code at most, and none that ClickHouse accepts. */
function suspects(count: number): string[] {
  return Array.from({ length: 32 }, (_, n) => [
    ...range(CONSUMING_ROWS_MAX, `poison-${n}-`),
    n < count ? `unknown-${n}` : `poison-${n}-16`,
    ...range(CONSUMING_ROWS_MAX - 1, `poison-${n}-x`),
  ]).flat()
}

describe('rows that are rejected for good', () => {
  it('leave a token unused if they are the first ones of a partition, and the parts are sent', async () => {
    const ids = [...range(CONSUMING_ROWS_MAX, 'poison-'), 'z']
    expect(await fixture.split(batchOf(ids))).toMatchObject({ at: 'stored' })
    expect(fixture.only('insert B:')).toEqual(ids.slice(0, CONSUMING_ROWS_MAX).map((id) => `insert B: ${id}`))
    expect(fixture.table.rows).toEqual(['z'])
    expect(fixture.deadLetters).toHaveLength(CONSUMING_ROWS_MAX)
  })

  it('leave the token to the first row of the partition that ClickHouse accepts', async () => {
    await fixture.split(batchOf(['poison-a', 'poison-b', 'c', 'd']))
    expect(fixture.only('insert B:')).toEqual(['insert B: poison-a', 'insert B: poison-b', 'insert B: c'])
  })

  it('keep back the parts while an insert of their range may commit, since the table may be changed', async () => {
    // A late insert of the range and a late insert of its part would both find their tokens unused.
    loseAnswers(1, (token) => token === 'B', insertLingerMaxMs)
    const batch = batchOf(['poison-a', 'poison-b'])
    const result = await fixture.split(batch)
    expect(result).toMatchObject({ at: 'suspended', recovery: { unsettledUntilMs: insertLingerMaxMs } })
    expect(fixture.only('insert').every((call) => call.startsWith('insert B:'))).toBe(true)
    if (result.at !== 'suspended') return
    fixture.table.faults.acceptsAll = true
    await fixture.clock.pass(insertLingerMaxMs - fixture.clock.nowMs())
    expect(await fixture.split(batch, result.recovery)).toMatchObject({ at: 'stored' })
    expect(fixture.table.rows.toSorted()).toEqual(['poison-a', 'poison-b'])
    expect(fixture.deadLetters).toEqual([])
  })
})

describe.each([
  ['decompressed', Buffer.from('not zstd')],
  ['decompressed to its end', makeChunk('x').frame.subarray(0, -3)],
  ['read as a block', Buffer.concat([Buffer.of(2), zstdCompressSync('not a block')])],
])('a chunk that cannot be %s', (_what, frame) => {
  const broken = { ...makeChunk('x'), frame }

  it('is dead-lettered as a whole, and its neighbours are inserted', async () => {
    const batch = batchOf(['a', 'poison-b'])
    const chunks = [broken, ...batch.chunks, makeTextChunk('y', [makeRow('c')])]
    expect(await fixture.split({ ...batch, chunks })).toMatchObject({ at: 'stored' })
    expect(fixture.deadLetters).toMatchObject([
      { code: 'UNREADABLE_CHUNK', text: broken.frame.toString('base64') },
      { code: 'INCORRECT_DATA' },
    ])
    expect(fixture.only('dead-letter')[0]).toBe('dead-letter B/chunk/x')
    expect(fixture.table.rows).toEqual(['a', 'c'])
  })

  it('can be the only one of its batch', async () => {
    const batch = { id: 'B', chunks: [broken], splits: new Set<string>(), repair: 7 }
    expect(await fixture.split(batch)).toMatchObject({ at: 'stored', deadLettered: 1 })
    expect(fixture.calls).toEqual(['persist all', 'dead-letter B/chunk/x'])
  })
})

/** ClickHouse crashes while it stores one of these inserts, after it has recorded the token. */
function crashIn(isCrash: (token: string) => boolean): void {
  let token = ''
  const crashed = new Set<string>()
  fixture.beforeInsert = (itsToken) => (token = itsToken)
  fixture.table.faults.crashesInCommit = () =>
    isCrash(token) && !crashed.has(token) && crashed.add(token).size > 0
}

describe('a token without its rows', () => {
  beforeEach(() => {
    fixture = new SplitterFixture({ areTokensAtomic: false })
  })

  it('of a part makes the worker send the halves of the part', async () => {
    crashIn((token) => token === 'B/0-4')
    expect(await fixture.split(batchOf(range(8)))).toMatchObject({ at: 'stored', deadLettered: 0 })
    expect(fixture.table.rows.toSorted()).toEqual(range(8))
    expect([...fixture.persisted]).toEqual(['all', 'halved', '0-4'])
  })

  it('of a row is replaced by another token', async () => {
    crashIn((token) => token === 'B/1-2')
    expect(await fixture.split(batchOf(['a', 'b']))).toMatchObject({ at: 'stored' })
    expect(fixture.table.rows).toEqual(['a', 'b'])
    expect(fixture.only('insert B/1-2/again')).toHaveLength(1)
  })

  it('may occur in any number of parts that are not nested', async () => {
    const pairs = new Set(range(8, '').map((i) => `B/${2 * Number(i)}-${2 * Number(i) + 2}`))
    crashIn((token) => pairs.has(token))
    const quads = ['0-8', '8-16', '0-4', '4-8', '8-12', '12-16']
    expect(await fixture.split(batchOf(range(16), ['all', ...quads]))).toMatchObject({ at: 'stored' })
    expect(fixture.table.rows).toHaveLength(16)
  })

  it('in this many nested parts is a crash each time, and in more of them the rows are hidden', async () => {
    const nested = ['B/0-32', 'B/0-16', 'B/0-8']
    expect(nested).toHaveLength(LOST_TOKENS_MAX)
    crashIn((token) => nested.includes(token))
    expect(await fixture.split(batchOf(range(64)))).toMatchObject({ at: 'stored' })
    fixture = new SplitterFixture({ areTokensAtomic: false })
    crashIn((token) => [...nested, 'B/0-4'].includes(token))
    await expect(fixture.split(batchOf(range(64)))).rejects.toThrow(new TokenWithoutRowsError('B/0-4'))
  })

  it('and without its row again under replacement tokens means that the row is hidden', async () => {
    fixture.isVisible = false
    await expect(fixture.split(batchOf(['a', 'b']))).rejects.toThrow(new TokenWithoutRowsError('B/0-1'))
  })
})

const suspectsOf = (ids: readonly string[], violated?: ClickHouseError): Suspects =>
  new Map(ids.map((id) => [id, violated]))

const findRejected = (ids: readonly string[], violated?: ClickHouseError): Suspects =>
  suspectsOf(
    ids.filter((id) => id.startsWith('poison')),
    violated,
  )

describe('rows that a query finds', () => {
  it('are sent alone after all others, which consume the token, and have dead letters in one insert', async () => {
    fixture.findSuspects = (ids) => findRejected(ids)
    const batch = batchOf(['a', 'poison-b', 'c', 'poison-d'])
    expect(await fixture.split(batch)).toMatchObject({ at: 'stored', deadLettered: 2 })
    expect(fixture.calls).toEqual([
      'persist all',
      'check a poison-b c poison-d',
      'look up a poison-b c poison-d',
      'insert B: a c',
      'persist alone:1,3',
      'look up a c',
      'look up poison-b poison-d',
      'insert B/1-2: poison-b',
      'insert B/3-4: poison-d',
      'look up poison-b poison-d',
      'persist rejected:1,3',
      'dead-letter B/rejected:1,3',
    ])
  })

  it.each([
    ['too many', (ids: readonly string[]) => suspectsOf(ids)],
    ['too few', () => suspectsOf(['poison-b'])],
    [
      'none, because the query fails',
      () => {
        throw new Error('the rows cannot be checked')
      },
    ],
  ])('may be %s', async (_which, findSuspects) => {
    fixture.findSuspects = findSuspects
    const ids = ['a', 'poison-b', 'c', 'poison-d', 'e']
    expect(await fixture.split(batchOf(ids))).toMatchObject({ at: 'stored', deadLettered: 2 })
    expect(fixture.table.rows.toSorted()).toEqual(['a', 'c', 'e'])
  })

  it('and violate a constraint are not all sent, if ClickHouse rejects one of them', async () => {
    const violated = insertErrors.poison
    fixture.findSuspects = (ids) => findRejected(ids, violated)
    const batch = batchOf(['a', 'poison-b', 'c', 'poison-d', 'poison-e'])
    expect(await fixture.split(batch)).toMatchObject({ at: 'stored', deadLettered: 3 })
    expect(fixture.only('insert')).toEqual(['insert B: a c', 'insert B/1-2: poison-b'])
    const reasons = fixture.deadLetters.map(({ reason }) => reason)
    expect(reasons).toEqual(['INCORRECT_DATA', violated.message, violated.message])
  })

  it('and violate a constraint are all sent, if ClickHouse accepts one of them', async () => {
    const violated = insertErrors.poison
    fixture.findSuspects = (ids) => suspectsOf(ids, violated)
    expect(await fixture.split(batchOf(['a', 'poison-b', 'c']))).toMatchObject({ deadLettered: 1 })
    expect(fixture.table.rows.toSorted()).toEqual(['a', 'c'])
  })

  it('stay alone in later repairs, and no range contains them', async () => {
    fixture.table.faults.acceptsAll = true
    await fixture.split(batchOf(['a', 'b', 'c', 'd'], ['all', 'alone:1', 'halved']))
    expect(fixture.only('insert')).toEqual(['insert B: a c d', 'insert B/1-2: b'])
  })

  it('are not searched for once halves may be in flight', async () => {
    fixture.findSuspects = (ids) => findRejected(ids)
    await fixture.split(batchOf(['a', 'poison-b', 'c', 'd'], ['all', 'halved']))
    expect(fixture.only('check', 'persist alone')).toEqual([])
    expect(fixture.deadLetters).toHaveLength(1)
  })

  it('have their dead letters looked up before another repair sends them again', async () => {
    const batch = batchOf(['a', 'poison-b', 'c', 'poison-d'], ['all', 'alone:1,3', 'rejected:1,3'])
    fixture.beforeDeadLetter = () => {
      throw new Error('no answer')
    }
    for (const id of ['poison-b', 'poison-d'])
      fixture.deadLetters.push({ code: 'C', reason: 'r', text: letterOf(makeRow(id)) })
    fixture.table.faults.acceptsAll = true
    expect(await fixture.split(batch)).toMatchObject({ at: 'stored', deadLettered: 2 })
    expect(fixture.table.rows.toSorted()).toEqual(['a', 'c'])
  })

  it('are followed by a pause if ClickHouse has the token without the other rows', async () => {
    fixture = new SplitterFixture({ areTokensAtomic: false })
    fixture.findSuspects = (ids) => findRejected(ids)
    crashIn((token) => token === 'B')
    expect(await fixture.split(batchOf(['a', 'poison-b', 'c']))).toMatchObject({ at: 'suspended' })
    expect(fixture.clock.nowMs()).toBeGreaterThanOrEqual(SETTLE_MS)
    expect(fixture.table.rows.toSorted()).toEqual(['a', 'c'])
    // No range has the row that is sent alone.
    expect(fixture.only('insert').filter((step) => step.includes('poison-b'))).toEqual([
      'insert B/1-2: poison-b',
    ])
  })
})

describe('transient errors', () => {
  it('of lookups and inserts are retried, and are not rejections', async () => {
    let failures = 0
    const failSometimes = (): void => {
      failures += 1
      if (failures % 2 === 1) throw failures % 4 === 1 ? insertErrors.transient : new Error('connection lost')
    }
    fixture.beforeInsert = failSometimes
    // A lookup without memory says nothing about the rows.
    let lookups = 0
    fixture.beforeLookup = () => {
      lookups += 1
      if (lookups % 2 === 1) throw insertErrors.too_big
    }
    expect(await fixture.split(batchOf(['a', 'b', 'c', 'd']))).toMatchObject({
      at: 'stored',
      deadLettered: 0,
    })
    expect(fixture.table.rows).toEqual(['a', 'b', 'c', 'd'])
  })

  it.each([
    ['inserts', (): void => void (fixture.beforeInsert = lose)],
    ['lookups', (): void => void (fixture.beforeLookup = lose)],
    ['dead letters', (): void => void (fixture.beforeDeadLetter = lose)],
  ])('of %s end when the worker gives up inserting', async (_what, fail) => {
    fail()
    // Another batch of this worker cannot be inserted either.
    const failing = (): void => fixture.otherInsert(new Error('connection lost'))
    failing()
    fixture.clock.after(giveUpMs, failing)
    await expect(fixture.split(batchOf(['poison-a']))).rejects.toThrow(RequeueError)
    expect(fixture.clock.nowMs()).toBe(giveUpMs)
  })
})

function lose(): never {
  throw new Error('connection lost')
}

describe('a batch that two workers have', () => {
  it('is stored once if an insert of the whole gets no response, and commits after the split', async () => {
    const batch = batchOf(['a', 'b', 'c', 'd'])
    const frames = batch.chunks.map(({ frame }) => frame)
    fixture.table.faults.isShortOfMemory = true
    let late = 0
    for (const afterMs of [0, 1, 59_000]) {
      fixture.clock.after(afterMs, () => {
        fixture.table.faults.isShortOfMemory = false
        fixture.table.insert(frames, 'B')
        fixture.table.faults.isShortOfMemory = true
        late += 1
      })
    }
    // Every second insert waits, so that the late ones arrive in between.
    let inserts = 0
    fixture.beforeInsert = () => {
      inserts += 1
      if (inserts % 2 === 0) throw insertErrors.transient
    }
    await fixture.split(batch)
    await fixture.clock.pass(60_000)
    expect(late).toBe(3)
    expect(fixture.table.rows.toSorted()).toEqual(['a', 'b', 'c', 'd'])
  })

  it('is stored once if ClickHouse rejects it as a whole and keeps the rows of one partition', async () => {
    const rows = [makeRow('a', '2026-12-01'), makeRow('b', '2026-12-02'), makeRow('c', '2026-12-01')]
    const chunks = [makeChunk('x', rows)]
    fixture.table.faults.isShortOfMemory = true
    fixture.table.faults.keepsPartOfRejected = () => true
    await expect(fixture.insert([chunks[0]?.frame ?? Buffer.alloc(0)], 'B')).rejects.toThrow(
      'MEMORY_LIMIT_EXCEEDED',
    )
    fixture.table.faults.isShortOfMemory = false
    expect(fixture.table.rows).toEqual(['a', 'c'])
    await fixture.split({ id: 'B', chunks, splits: new Set(), repair: 7 })
    expect(fixture.table.rows).toEqual(['a', 'c', 'b'])
  })

  it('is stored once if one worker dies in the middle of the split and the other repeats it', async () => {
    fixture.table.faults.isShortOfMemory = true
    let inserts = 0
    fixture.beforeInsert = () => {
      inserts += 1
      if (inserts === 4) throw new TypeError('dies here')
    }
    const ids = range(8)
    await expect(fixture.split(batchOf(ids))).rejects.toThrow(TypeError)
    expect(fixture.table.rows.length).toBeLessThan(8)
    fixture.table.faults.isShortOfMemory = false
    expect(await fixture.split(batchOf(ids, [...fixture.persisted]))).toMatchObject({ at: 'stored' })
    expect(fixture.table.rows.toSorted()).toEqual(ids)
  })
})
