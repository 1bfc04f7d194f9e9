import type { CommandLine } from '@sluice/harness/command-line'

/** @param given lists of names, comma-separated; `fallback` is chosen without it */
export function readNames<Name extends string>(
  commandLine: CommandLine,
  option: string,
  given: readonly string[] | undefined,
  all: readonly Name[],
  fallback = all,
): readonly Name[] {
  if (given === undefined) return fallback
  const names = new Set(given.flatMap((each) => each.split(',')))
  const found = all.filter((each) => names.has(each))
  if (found.length !== names.size) commandLine.fail(`${option} takes any of ${all.join(', ')}`)
  return found
}
