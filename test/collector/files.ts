import { pause } from '@sluice/harness'
import { appendFile, rename } from 'node:fs/promises'
import type { RecordOptions } from './generator.ts'

const MS_PER_SECOND = 1_000
/** A file is renamed after this many lines, to the name of the one before, which is then gone: its lines must have been read. */
const LINES_PER_FILE = 100_000

/** Writes numbered lines to a file, and renames it from time to time. @returns 0: a write is not repeated */
export async function writeFiles(options: RecordOptions & { readonly file: string }): Promise<number> {
  const { file, label, records, recordsPerRequest, recordsPerSecond, progress } = options
  const startedAtMs = performance.now()
  for (let first = 0; first < records; first += recordsPerRequest) {
    await pause(startedAtMs + (first / recordsPerSecond) * MS_PER_SECOND - performance.now())
    if (first > 0 && first % LINES_PER_FILE === 0) await rename(file, `${file}.1`)
    const count = Math.min(recordsPerRequest, records - first)
    const lines = Array.from(
      { length: count },
      (_, index) => `${new Date().toISOString()} INFO ${label}-${first + index}\n`,
    )
    await appendFile(file, lines.join(''))
    progress(first + count)
  }
  return 0
}
