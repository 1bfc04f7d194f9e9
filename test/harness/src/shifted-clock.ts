// Shifts the wall clock of a process by CLOCK_SHIFT_MS, or by the number in the file CLOCK_SHIFT_FILE, which may change at any time. To
// be loaded before its entry file: `--import`. The monotonic clock is not shifted.
import { existsSync, readFileSync } from 'node:fs'

const FILE_READ_INTERVAL_MS = 100

const RealDate = Date
const file = process.env['CLOCK_SHIFT_FILE']
let shiftMs = Number(process.env['CLOCK_SHIFT_MS'] ?? 0)

if (file !== undefined) {
  const read = (): void => {
    if (existsSync(file)) shiftMs = Number(readFileSync(file, 'utf8'))
  }
  read()
  setInterval(read, FILE_READ_INTERVAL_MS).unref()
}

globalThis.Date = class extends RealDate {
  constructor(...args: [] | [number]) {
    if (args.length === 0) super(RealDate.now() + shiftMs)
    else super(...args)
  }

  static override now(): number {
    return RealDate.now() + shiftMs
  }
} as DateConstructor
