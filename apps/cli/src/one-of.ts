import { UsageError } from './errors.ts'

/** @throws UsageError when the value of an option is not one of those allowed */
export function requireOneOf(option: string, value: string, allowed: readonly string[]): void {
  if (allowed.includes(value)) return
  throw new UsageError(`${option} must be one of ${allowed.join(', ')}, not "${value}"`)
}
