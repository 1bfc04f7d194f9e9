export { parseJsonExactly } from './exact-json.ts'
export { COUNTER_AT, ID_BYTES, IDS_PER_MS, IdSource, idTimeMs } from './ids.ts'
export {
  makeRowPrefix,
  type RequestStamp,
  rowAsJson,
  rowColumns,
  type RowKey,
  rowKey,
  type RowPrefix,
} from './row-codec.ts'
export { compressRows, framesWithout, hasRowOf, rowsOfFrame } from './row-frame.ts'
export { parseTimestamp, toClickHouseTime } from './timestamps.ts'
