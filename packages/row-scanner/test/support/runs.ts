/** The options of a property that usually has this number of runs. `FUZZ_FACTOR=70` makes a hundred thousand of the largest. */
export const runsOf = (usual: number): { readonly numRuns: number } => ({
  numRuns: usual * Number(process.env['FUZZ_FACTOR'] ?? 1),
})
