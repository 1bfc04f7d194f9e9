/** The powers of ten by which doubles are written: see `assembly/doubles.ts`. */
const EXPONENT_MIN = -292
const EXPONENT_MAX = 324
const BITS = 128
/** More bits than the largest power needs. */
const PRECISION = 2_048n

/** Writes the first 128 bits of each power, rounded up: the upper half, then the lower half. */
export function writePowers(memory: Buffer, at: number): void {
  for (let exponent = EXPONENT_MIN; exponent <= EXPONENT_MAX; exponent += 1) {
    const power = exponent < 0 ? (1n << PRECISION) / 10n ** BigInt(-exponent) : 10n ** BigInt(exponent)
    const extra = power.toString(2).length - BITS
    const isExact = exponent >= 0 && (extra <= 0 || power % (1n << BigInt(extra)) === 0n)
    const first = (extra > 0 ? power >> BigInt(extra) : power << BigInt(-extra)) + (isExact ? 0n : 1n)
    const entry = at + (exponent - EXPONENT_MIN) * (BITS / 8)
    memory.writeBigUInt64LE(first >> 64n, entry)
    memory.writeBigUInt64LE(BigInt.asUintN(64, first), entry + 8)
  }
}
