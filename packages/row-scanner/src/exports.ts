import type { Constant, Memory } from './web-assembly.ts'

/** The exports of `assembly/index.ts`: functions, addresses, and sizes in bytes. */
export interface Exports {
  readonly memory: Memory
  readonly setSeed: (seed: bigint) => void
  readonly restartIds: () => void
  readonly setStamp: (projectBytes: number, receivedAtMs: bigint, expiresOn: number) => void
  readonly idCounter: () => number
  readonly scan: (bytes: number) => number
  readonly scanLines: (bytes: number) => number
  readonly scanOtlp: (bytes: number) => number
  readonly scanOtlpJson: () => number
  readonly scanLoki: (bytes: number) => number
  readonly scanLokiJson: (bytes: number) => number
  readonly scanBulk: (bytes: number, pathIndexBytes: number, isUtf8: boolean) => number
  readonly scanDatadog: (bytes: number) => number
  readonly scanHecEvents: (bytes: number) => number
  readonly scanHecLines: (bytes: number, originBytes: number) => number
  readonly useWords: (
    names: number,
    levels: number,
    environments: number,
    contractLevels: number,
    contractEnvironments: number,
  ) => void
  readonly textEnd: () => number
  readonly messageFault: () => number
  readonly messageFaultAt: () => number
  readonly malformedReason: () => number
  readonly malformedLine: () => number
  readonly entryCount: () => number
  readonly rowCount: () => number
  readonly rowsEnd: () => number
  readonly errorCount: () => number
  readonly recordCount: () => number
  readonly pieceCount: () => number
  readonly fault: () => number
  readonly faultAt: () => number
  readonly faultLine: () => number
  readonly faultColumn: () => number
  readonly timestampStart: () => number
  readonly timestampEnd: () => number
  readonly BODY: Constant
  readonly BODY_BYTES_MAX: Constant
  readonly COLUMNS_MAX: Constant
  readonly ERRORS: Constant
  readonly FIELDS: Constant
  readonly FIELDS_BYTES_MAX: Constant
  readonly ID: Constant
  readonly ITEMS: Constant
  readonly LETTERS: Constant
  readonly NUMBERINGS: Constant
  readonly ORIGIN: Constant
  readonly ORIGIN_BYTES_MAX: Constant
  readonly PIECES: Constant
  readonly POWERS: Constant
  readonly PROJECT: Constant
  readonly PROJECT_BYTES_MAX: Constant
  readonly ROWS: Constant
  readonly TAPE: Constant
  readonly TAPE_BYTES_MAX: Constant
  readonly WORDS: Constant
  readonly WORDS_MAX: Constant
}
