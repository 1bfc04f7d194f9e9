import { expect, it } from 'vitest'
import { BlockPacker } from '../src/block-packer.ts'
import { packBlocks } from '../src/row-frame.ts'
import { namedRows } from './support/index.ts'

const packer = new BlockPacker()
const blocksOf = (rows: number): Buffer =>
  namedRows(...Array.from({ length: rows }, (_, i) => `row ${i} ${'of text '.repeat(20)}`))
/** With more room than the blocks need, as the writer has it. */
const memoryOf = (blocks: Buffer): Buffer => {
  const memory = Buffer.allocUnsafeSlow(2 * blocks.length)
  memory.set(blocks)
  return memory
}

it.each([1, 100, 1_000])('packs %i rows as without a thread, and returns the memory', async (rows) => {
  const blocks = blocksOf(rows)
  const { memory, ...packed } = await packer.pack(memoryOf(blocks), blocks.length)
  expect(packed).toEqual(packBlocks(blocks))
  expect(memory).toHaveLength(2 * blocks.length)
})

it('keeps the order of what it packs', async () => {
  const all = [1_000, 500, 1, 2_000].map(blocksOf)
  const packed = await Promise.all(all.map((blocks) => packer.pack(memoryOf(blocks), blocks.length)))
  expect(packed.map(({ rows }) => rows)).toEqual([1_000, 500, 1, 2_000])
})

it('fails what is in its thread if something there is no block, and packs what comes after it', async () => {
  const bytes = 1_000_000
  const invalid = packer.pack(Buffer.allocUnsafeSlow(bytes).fill('x'), bytes)
  const [failed, ...after] = await Promise.allSettled([
    invalid,
    ...[1_000, 500].map((rows) => packer.pack(memoryOf(blocksOf(rows)), blocksOf(rows).length)),
  ])
  expect(failed).toMatchObject({ status: 'rejected', reason: expect.any(RangeError) as unknown })
  expect(after.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const blocks = blocksOf(700)
  expect(await packer.pack(memoryOf(blocks), blocks.length)).toMatchObject({ rows: 700 })
})
