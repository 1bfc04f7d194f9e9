// Shifts the wall clock of a process by CLOCK_SHIFT_MS. To be loaded before its entry file: `--import`. The monotonic clock is not
// shifted.
const RealDate = Date
const shiftMs = Number(process.env['CLOCK_SHIFT_MS'])

globalThis.Date = class extends RealDate {
  constructor(...args: [] | [number]) {
    if (args.length === 0) super(RealDate.now() + shiftMs)
    else super(...args)
  }

  static override now(): number {
    return RealDate.now() + shiftMs
  }
} as DateConstructor
