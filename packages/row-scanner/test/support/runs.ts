const factor = process.env['FUZZ_FACTOR']

/**
 * The options of a property that usually has this number of runs, always the same ones. `FUZZ_FACTOR=200` makes a hundred thousand of the
 * largest, others each time.
 */
export const runsOf = (usual: number): { readonly numRuns: number; readonly seed?: number } =>
  factor === undefined ? { numRuns: usual, seed: 1 } : { numRuns: usual * Number(factor) }
