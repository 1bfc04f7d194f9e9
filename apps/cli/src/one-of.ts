import { UsageError } from './errors.ts'

/** @throws UsageError when the value of an option is not one of those allowed */
export function requireOneOf<Allowed extends string>(
  option: string,
  value: string,
  allowed: readonly Allowed[],
): Allowed {
  const found = allowed.find((one) => one === value)
  if (found !== undefined) return found
  throw new UsageError(`${option} must be one of ${allowed.join(', ')}, not "${value}"`)
}
