import { compressBlock, compressRows, readJoined } from '@sluice/rows'
import { encodeBlock } from '@sluice/rows/testing'
import { randomUUID } from 'node:crypto'
import { zstdCompressSync } from 'node:zlib'
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { DeduplicationError } from '../src/deduplication-check.ts'
import { classifyInsertError } from '../src/insert-errors.ts'
import { FrameInserter } from '../src/row-inserter.ts'
import { logsTable } from '../src/tables.ts'
import { connectAgain, makeRow, openTestDatabase, select, unwatched } from './test-database.ts'

const clickhouse = await openTestDatabase()
const inserter = new FrameInserter(clickhouse, unwatched)
afterAll(() => clickhouse.close())

let projectId: string
/** The rows of three chunks. ClickHouse makes two parts of them. */
let chunks: readonly (readonly string[])[]

beforeEach(() => {
  projectId = randomUUID()
  const rowOf = (name: string, retentionDays: number): string =>
    makeRow({ projectId, retentionDays }, { message: `${name}, grüße\t\n\\ 😀` })
  chunks = ['a', 'b', 'c'].map((name) => [rowOf(`${name}1`, 30), rowOf(`${name}2`, 31)])
})

const asText = (rows: readonly string[]): Buffer => compressRows(rows.join(''))
/** A request has a block of its own. */
const asBlocks = (rows: readonly string[]): Buffer =>
  compressBlock(readJoined(Buffer.concat(rows.map((row) => encodeBlock([row])))))

type Format = 'blocks' | 'text' | 'both' | 'both, text first'
const framesOf = (format: Format): Buffer[] =>
  chunks.map((rows, i) => {
    const isText = format === 'text' || (format === 'both' ? i === 1 : format !== 'blocks' && i === 0)
    return isText ? asText(rows) : asBlocks(rows)
  })

/** The ids and texts of the stored rows. */
async function stored(): Promise<unknown[]> {
  const query = `SELECT toString(id) AS id, message FROM ${logsTable} WHERE project_id = {projectId: String} ORDER BY message`
  return select(clickhouse, query, { projectId })
}

const all = (): unknown[] =>
  chunks.flat().map((row) => {
    const fields = row.split('\t')
    return {
      id: fields[3],
      message: (fields[11] ?? '').replace('\\t', '\t').replace('\\n', '\n').replace('\\\\', '\\'),
    }
  })

describe('frames', () => {
  const formats: readonly Format[] = ['blocks', 'text', 'both', 'both, text first']
  it.each(formats)('of %s are stored once per token, whatever the rows are sent as again', async (first) => {
    const token = randomUUID()
    for (const format of [first, ...formats]) {
      await inserter.insert(framesOf(format), token)
      expect(await stored()).toEqual(all())
    }
    await inserter.insert(framesOf(first), randomUUID())
    expect(await stored()).toHaveLength(2 * chunks.flat().length)
  })

  it('of one row in text consume the token of a batch of blocks in its partition', async () => {
    const [token, row = ''] = [randomUUID(), chunks[0]?.[0]]
    await inserter.insert([asText([row])], token)
    await inserter.insert(framesOf('blocks'), token)
    const others = all().filter((_row, i) => i % 2 === 1)
    expect(await stored()).toEqual([all()[0], ...others])
  })
})

/** Of how many inserts the table of the check remembers the tokens. */
const remember = (blocks: number) =>
  clickhouse.command({
    query: `ALTER TABLE deduplication_checks MODIFY SETTING non_replicated_deduplication_window = ${blocks}`,
  })
const insert = (its: FrameInserter) => its.insert(framesOf('blocks'), randomUUID())

describe('a ClickHouse that stores rows whose token was used', () => {
  it('gets no rows until it no longer does', async () => {
    const careful = new FrameInserter(clickhouse, unwatched)
    await remember(0)
    try {
      const error = await insert(careful).catch((caught: unknown) => caught)
      expect(error).toBeInstanceOf(DeduplicationError)
      expect(classifyInsertError(error).failure).toBe('transient')
      expect(await stored()).toEqual([])
    } finally {
      await remember(1_000)
    }
    await insert(careful)
    expect(await stored()).toHaveLength(chunks.flat().length)
  })

  it('is not blamed on the rows when it cannot be asked', async () => {
    const limited = await connectAgain(clickhouse, { rowsReadMax: 1 })
    onTestFinished(() => limited.close())
    const error = await insert(new FrameInserter(limited, unwatched)).catch((caught: unknown) => caught)
    expect(classifyInsertError(error)).toEqual({ failure: 'transient', code: 'DeduplicationError' })
  })

  it('is noticed after a restart', async () => {
    let isAway = false
    const careful = new FrameInserter(clickhouse, {
      ...unwatched,
      run: async (id, send) => {
        if (isAway && id.startsWith('sluice/rows/')) throw new Error('ECONNRESET')
        return unwatched.run(id, send)
      },
    })
    await insert(careful)
    isAway = true
    await expect(insert(careful)).rejects.toThrow('ECONNRESET')
    isAway = false
    await remember(0)
    try {
      await expect(insert(careful)).rejects.toThrow(DeduplicationError)
    } finally {
      await remember(1_000)
    }
  })
})

/** So large that each column is compressed alone. */
const frameOf = (name: string): Buffer =>
  asBlocks(
    [30, 31].map((days) => makeRow({ projectId, retentionDays: days }, { message: name.repeat(70_000) })),
  )
const lengths = async (): Promise<unknown[]> =>
  (await stored()).map((row) => (row as { message: string }).message.length)

describe('frames of columns', () => {
  it('are stored as they are, with a small one and among text', async () => {
    await inserter.insert([frameOf('a'), ...framesOf('blocks'), frameOf('b')], randomUUID())
    expect(await lengths()).toHaveLength(10)
    await inserter.insert([frameOf('c'), ...framesOf('text')], randomUUID())
    expect((await lengths()).filter((length) => length === 70_000)).toHaveLength(6)
  })

  it.each(Array.from({ length: 12 }, (_, i) => i))(
    'are rejected as poison if one is damaged at the place %i of 12, and no row is stored',
    async (place) => {
      const damaged = frameOf('a')
      const at = Math.floor((place * damaged.length) / 12) + 1
      damaged[at] = (damaged[at] ?? 0) ^ 0x55
      for (const frames of [[damaged], [frameOf('b'), damaged], [damaged, frameOf('b')]]) {
        const error: unknown = await inserter
          .insert(frames, randomUUID())
          .catch((rejection: unknown) => rejection)
        expect(classifyInsertError(error)).toMatchObject({ failure: 'poison' })
      }
      expect(await stored()).toEqual([])
    },
  )
})

describe('a damaged frame of blocks', () => {
  const damages: Readonly<Record<string, (frame: Buffer) => Buffer>> = {
    'is cut off': (frame) => frame.subarray(0, -3),
    'has another byte': (frame) => Buffer.concat([frame.subarray(0, 9), Buffer.of(0xff), frame.subarray(10)]),
    'has bytes that are not a block': () => Buffer.concat([Buffer.of(2), zstdCompressSync('not a block')]),
    'has only its first byte': (frame) => frame.subarray(0, 1),
  }

  it.each(
    Object.keys(damages).flatMap((damage) =>
      (['blocks', 'both, text first'] as const).map((format) => ({ damage, format })),
    ),
  )(
    'that $damage is rejected as poison among frames of $format, which are stored without it',
    async ({ damage, format }) => {
      const token = randomUUID()
      const [first, second = Buffer.of(), last] = framesOf(format)
      const others = [first, last].filter((frame) => frame !== undefined)
      const damaged = damages[damage]?.(second) ?? second
      for (const frames of [[damaged], [damaged, ...others], [...others, damaged]]) {
        const error: unknown = await inserter.insert(frames, token).catch((rejection: unknown) => rejection)
        expect(classifyInsertError(error)).toEqual({ failure: 'poison', code: 'INCORRECT_DATA' })
      }
      expect(await stored()).toEqual([])
      await inserter.insert(others, token)
      expect(await stored()).toEqual(all().filter((_row, i) => i !== 2 && i !== 3))
    },
  )
})
