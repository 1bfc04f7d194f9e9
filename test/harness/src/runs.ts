const factor = process.env['FUZZ_FACTOR']

/**
 * The options of a property with a usual number of runs, always the same ones: a case that was always wrong fails the tests of its author
 * only. `FUZZ_FACTOR=200` makes so many times as many, others each time.
 */
export const runsOf = (usual: number): { readonly numRuns: number; readonly seed?: number } =>
  factor === undefined ? { numRuns: usual, seed: 1 } : { numRuns: usual * Number(factor) }
