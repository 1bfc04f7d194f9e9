export { BlockPacker } from './block-packer.ts'
export { type Block, earliestReceiptMs, insertBody, readJoined, receivedFrom } from './blocks.ts'
export { keepText, parseJsonExactly } from './exact-json.ts'
export { IDS_PER_MS, IdSource, idTimeMs, withCounter } from './ids.ts'
export {
  columnTypes,
  makeRowPrefix,
  nativeString,
  type RequestStamp,
  rowAsJson,
  rowColumns,
  type RowKey,
  rowKey,
  type RowPrefix,
} from './row-codec.ts'
export {
  blockOfFrame,
  compressBlock,
  compressedBlockOf,
  compressRows,
  framesWithout,
  hasRowOf,
  isOfBlocks,
  keysOfFrame,
  packBlocks,
  type PackedRows,
  rowsOfFrame,
} from './row-frame.ts'
export { parseTimestamp, toClickHouseTime } from './timestamps.ts'
