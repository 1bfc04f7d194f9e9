export { type RecordOrigin, RowScanner, type ScannedRecords, type ScannedRows } from './row-scanner.ts'
export { type NotAPromise, type Owned, ownedRows, type Rows } from './rows.ts'
