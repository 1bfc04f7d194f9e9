import { SLUICE } from '../program-name.ts'

type Example = readonly [args: string, meaning: string]

/** Examples for the end of a help page. */
export function examples(...given: readonly Example[]): string {
  const width = Math.max(...given.map(([args]) => args.length))
  const lines = given.map(([args, meaning]) => `  ${SLUICE} ${args.padEnd(width)}  # ${meaning}`)
  return `\nExamples:\n${lines.join('\n')}`
}
