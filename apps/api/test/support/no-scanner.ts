import type { RowScanner } from '@sluice/row-scanner'

/** Leaves everything to the parser and the decoders. */
export const noScanner: Pick<RowScanner, 'scan' | 'scanRecords'> = {
  scan: () => undefined,
  scanRecords: (scopeLogs, at) => ({ rows: undefined, bytes: scopeLogs.length - at }),
}
