import { type EntryError, limits } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { bulkAnswer, type Item, readFilter } from '../../../src/protocols/elasticsearch/bulk-answer.ts'

const itemsOf = (count: number): Item[] =>
  Array.from({ length: count }, (_, i) => ({
    action: 'index',
    index: i % 3 === 0 ? null : `i${i % 2}`,
    id: String(i),
  }))
const invalid: EntryError = { path: '', code: 'wrong_type', message: 'must be an object' }

/** Makes a response. Its string is `json`; `stepMax` is the largest number of items that were made in a step. */
async function make(
  items: readonly Item[],
  rejected: ReadonlyMap<number, EntryError> = new Map(),
  filter?: string,
) {
  const made = { json: '', turns: 0, held: 0, stepMax: 0 }
  let step = 0
  const counted = items.map((item) => ({
    ...item,
    get action() {
      step += 1
      made.stepMax = Math.max(made.stepMax, step)
      return item.action
    },
  }))
  const { body } = await bulkAnswer(counted, { records: items.length, rejected }, readFilter(filter), {
    hold: (bytes) => {
      made.held += bytes
    },
    nextTurn: async () => {
      made.turns += 1
      step = 0
    },
  })
  made.json = Buffer.concat(body as readonly Buffer[]).toString()
  return made
}

describe('the response to a bulk request', () => {
  it.each([0, 1, 1_023, 1_024, 1_025, 5_000])(
    'has an item for each of %i actions, in order',
    async (count) => {
      const made = await make(itemsOf(count), new Map([[1_024, invalid]]))
      const { items = [] } = JSON.parse(made.json) as {
        items?: { index: { _id: string; status: number } }[]
      }
      expect(items.map(({ index: { _id: id } }) => Number(id))).toEqual(
        Array.from({ length: count }, (_, i) => i),
      )
      expect(items.filter(({ index }) => index.status !== 201).length).toBe(count > 1_024 ? 1 : 0)
    },
  )

  it('is made in steps of 1,024 items, each in a turn of its own', async () => {
    const made = await make(itemsOf(limits.recordsPerRequestMax))
    expect([made.turns, made.stepMax]).toEqual([16, 1_024])
    expect((await make(itemsOf(1_024))).turns).toBe(0)
  })

  it('is held while it is made', async () => {
    const made = await make(itemsOf(5_000))
    expect(made.held).toBe(Buffer.byteLength(made.json))
    const full = new Error('full')
    let steps = 0
    await expect(
      bulkAnswer(itemsOf(5_000), { records: 5_000, rejected: new Map() }, readFilter(undefined), {
        hold: () => {
          steps += 1
          if (steps === 2) throw full
        },
        nextTurn: async () => undefined,
      }),
    ).rejects.toBe(full)
    expect(steps).toBe(2)
  })

  it('omits items without fields, in any step', async () => {
    const rejected = new Map([0, 2_000, 4_999].map((at) => [at, invalid]))
    const made = await make(itemsOf(5_000), rejected, 'errors,items.*.error')
    const { items } = JSON.parse(made.json) as { items: unknown[] }
    expect(items.length).toBe(3)
    expect((await make(itemsOf(5_000), new Map(), 'errors,items.*.error')).json).toBe('{"errors":false}')
    expect(JSON.parse((await make(itemsOf(5_000), rejected, 'items.*.error')).json)).toEqual({ items })
    expect((await make(itemsOf(3), new Map(), 'items.*.error')).json).toBe('{}')
  })

  it.each([
    ['x'.repeat(160), 'x'.repeat(160)],
    ['x'.repeat(161), `${'x'.repeat(159)}…`],
    [`${'x'.repeat(158)}😀😀`, `${'x'.repeat(158)}\u{FFFD}…`],
  ])('has up to 160 characters of a reason', async (reason, written) => {
    const item = { action: 'index', index: null, id: null, error: { type: 't', reason } }
    const made = await make([item], new Map([[0, invalid]]), 'items.*.error')
    expect(made.json).toBe(JSON.stringify({ items: [{ index: { error: { type: 't', reason: written } } }] }))
  })
})
