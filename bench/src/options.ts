import type { CommandLine } from '@sluice/harness/command-line'

/** @param given lists of names, comma-separated; `fallback` is chosen without it */
export function readNames<T>(
  commandLine: CommandLine,
  option: string,
  given: readonly string[] | undefined,
  all: readonly T[],
  nameOf: (each: T) => string,
  fallback: readonly T[] = all,
): readonly T[] {
  if (given === undefined) return fallback
  const names = new Set(given.flatMap((each) => each.split(',')))
  const found = all.filter((each) => names.has(nameOf(each)))
  if (found.length !== names.size) commandLine.fail(`${option} takes any of ${all.map(nameOf).join(', ')}`)
  return found
}

export function readPositive(commandLine: CommandLine, option: string, given: string): number {
  const value = Number(given)
  const isPositive = Number.isFinite(value) && value > 0
  return isPositive ? value : commandLine.fail(`${option} must be a number greater than 0`)
}
