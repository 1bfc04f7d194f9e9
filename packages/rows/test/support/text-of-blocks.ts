import { readBlocks, rowsOfBlock } from '../../src/blocks.ts'

/** The rows of blocks that follow each other, as text. */
export function textOfBlocks(blocks: Buffer): string {
  const rows = readBlocks(blocks)?.flatMap((block) => rowsOfBlock(block))
  return rows?.join('') ?? 'not blocks'
}
