export { type BulkItem } from './bulk.ts'
export { RejectedBody } from './errors.ts'
export { type NotAPromise, type Owned, ownedRows, type Rows } from './rows.ts'
export {
  type LinesOrigin,
  type Piece,
  type PieceLimits,
  type Scanned,
  type ScannedBulk,
  type ScannedRecords,
  Scanner,
} from './scanner.ts'
