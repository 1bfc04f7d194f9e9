export { EntryValidator } from './entry-validator.ts'
export { isInexact } from './exact-json.ts'
export { ID_BYTES, IdSource, idTimeMs } from './ids.ts'
export { jsonWhitespace, parseJson, parseJsonExactly } from './json.ts'
export { InexactNumberError } from './metadata.ts'
export {
  makeRowPrefix,
  type RequestStamp,
  rowAsJson,
  rowColumns,
  type RowKey,
  rowKey,
  type RowPrefix,
} from './row-codec.ts'
export { compressRows, framesWithout, rowsOfFrame } from './row-frame.ts'
export { shapeRow, type ShapedRow } from './shape-row.ts'
export { parseTimestamp, toClickHouseTime } from './timestamps.ts'
