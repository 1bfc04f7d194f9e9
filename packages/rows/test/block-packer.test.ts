import { describe, expect, it } from 'vitest'
import { BlockPacker } from '../src/block-packer.ts'
import { packBlocks } from '../src/row-frame.ts'
import { namedRows } from './support/index.ts'

const packer = new BlockPacker()
const blocksOf = (rows: number): Buffer =>
  Buffer.concat([namedRows(...Array.from({ length: rows }, (_, i) => `row ${i}`))])
/** With more room than the blocks need, as the writer has it. */
const memoryOf = (blocks: Buffer): Buffer => {
  const memory = Buffer.allocUnsafeSlow(2 * blocks.length)
  memory.set(blocks)
  return memory
}

it.each([1, 100, 20_000])('packs %i rows as without a thread, and returns the memory', async (rows) => {
  const blocks = blocksOf(rows)
  const { memory, ...packed } = await packer.pack(memoryOf(blocks), blocks.length)
  expect(packed).toEqual(packBlocks(blocks))
  expect(memory).toHaveLength(2 * blocks.length)
})

it('keeps the order of what it packs', async () => {
  const all = [20_000, 5_000, 1, 10_000].map(blocksOf)
  const packed = await Promise.all(all.map((blocks) => packer.pack(memoryOf(blocks), blocks.length)))
  expect(packed.map(({ rows }) => rows)).toEqual([20_000, 5_000, 1, 10_000])
})

describe('what is no block', () => {
  const bytes = 1_000_000

  it('fails alone: the next is packed', async () => {
    await expect(packer.pack(Buffer.allocUnsafeSlow(bytes).fill('x'), bytes)).rejects.toThrow(RangeError)
    const blocks = blocksOf(20_000)
    expect(await packer.pack(memoryOf(blocks), blocks.length)).toMatchObject({ rows: 20_000 })
  })
})
