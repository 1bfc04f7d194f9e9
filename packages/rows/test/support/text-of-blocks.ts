import { readJoined, rowsOfBlock } from '../../src/blocks.ts'

/** The rows of blocks that follow each other, as text. */
export function textOfBlocks(blocks: Buffer): string {
  return blocks.length === 0 ? '' : rowsOfBlock(readJoined(blocks)).join('')
}
