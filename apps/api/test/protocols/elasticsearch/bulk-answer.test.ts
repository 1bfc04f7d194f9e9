import type { BulkItem } from '@sluice/row-scanner'
import { type EntryError, limits } from '@sluice/schema'
import { expect, it } from 'vitest'
import { bulkAnswer } from '../../../src/protocols/elasticsearch/bulk.ts'

const itemsOf = (count: number): BulkItem[] =>
  Array.from({ length: count }, (_, i) => ({
    action: 'index',
    index: null,
    id: String(i),
    indexFault: undefined,
  }))
const invalid: EntryError = { path: '', code: 'wrong_type', message: 'must be an object' }

/** Makes a response. Its string is `json`. */
async function make(
  items: readonly BulkItem[],
  rejected: readonly number[] = [],
  hold: (bytes: number) => void = () => {},
) {
  let turns = 0
  const outcome = { records: items.length, rejected: new Map(rejected.map((at) => [at, invalid])) }
  const { body } = await bulkAnswer(items, outcome, true, {
    hold,
    nextTurn: async () => void (turns += 1),
  })
  return { json: Buffer.concat(body as readonly Buffer[]).toString(), turns }
}

it.each([
  [1_024, 0],
  [1_025, 2],
  [limits.recordsPerRequestMax, 16],
])(
  'the response to %i actions has an item for each, and is made and held in %i turns',
  async (count, turns) => {
    let held = 0
    const made = await make(itemsOf(count), [1_024], (bytes) => (held += bytes))
    const { items } = JSON.parse(made.json) as { items: { index: { _id: string; status: number } }[] }
    expect(items.map(({ index: { _id: id } }) => Number(id))).toEqual(
      Array.from({ length: count }, (_, i) => i),
    )
    expect(items.filter(({ index }) => index.status !== 201).length).toBe(count > 1_024 ? 1 : 0)
    expect([made.turns, held]).toEqual([turns, Buffer.byteLength(made.json)])
  },
)

it('a response that cannot be held is not made to its end', async () => {
  const full = new Error('full')
  let steps = 0
  const hold = (): void => {
    steps += 1
    if (steps === 2) throw full
  }
  await expect(make(itemsOf(5_000), [], hold)).rejects.toBe(full)
  expect(steps).toBe(2)
})

it('a response has up to 160 characters of a reason', async () => {
  const item = { action: 'index', index: 'i', id: null, indexFault: `${'x'.repeat(134)}😀😀` } as const
  const made = await make([item], [0])
  expect(made.json).toContain(`${'x'.repeat(134)}\u{FFFD}…"`)
})
