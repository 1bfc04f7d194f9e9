export { RowScanner, type ScannedRows } from './row-scanner.ts'
export { type NotAPromise, type Owned, ownedRows, type Rows } from './rows.ts'
