export { EntryValidator } from './entry-validator.ts'
export { isInexact, isRawJson, keepInexact } from './exact-json.ts'
export { ID_BYTES, IdSource, idTimeMs } from './ids.ts'
export { buildExactly } from './json/builder.ts'
export { describeFault } from './json/fault.ts'
export { parseChecked, parseJsonExactly } from './json/parse.ts'
export { type JsonObserver, JsonScanner } from './json/scanner.ts'
export { isTooDeep } from './metadata.ts'
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
export { metadataError, shapeRow, type ShapedRow } from './shape-row.ts'
export { parseTimestamp, toClickHouseTime } from './timestamps.ts'
