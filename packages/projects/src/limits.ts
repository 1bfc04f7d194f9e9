/**
 * The rate limits of a project that differ from the defaults of the API processes. An absent limit means the default. A
 * rate of 0 means no limit. A burst is the amount that may be sent at once after a pause.
 */
export interface ProjectLimits {
  readonly entriesPerSecond?: number
  readonly burstEntries?: number
  /** Counts decoded bodies. */
  readonly bytesPerSecond?: number
  readonly burstBytes?: number
}

export type ProjectLimitName = keyof ProjectLimits

/** Changes to a project's limits. Null restores the default. */
export type ProjectLimitChanges = { readonly [Name in ProjectLimitName]?: number | null }

/**
 * The allowed values. The maxima are far above what any installation can process, and keep sums exact. A byte limit below
 * 1 KiB per second would allow less than one entry per second: almost certainly a mistake in the unit.
 */
const projectLimitRanges: Readonly<
  Record<ProjectLimitName, { min: number; max: number; mayBeUnlimited: boolean }>
> = {
  entriesPerSecond: { min: 1, max: 1_000_000_000, mayBeUnlimited: true },
  burstEntries: { min: 1, max: 1_000_000_000, mayBeUnlimited: false },
  bytesPerSecond: { min: 1_024, max: 1_000_000_000_000, mayBeUnlimited: true },
  burstBytes: { min: 1_024, max: 1_000_000_000_000, mayBeUnlimited: false },
}

export const projectLimitNames = Object.keys(projectLimitRanges) as readonly ProjectLimitName[]

/** A human-readable reason why the value is invalid, or undefined if it is valid. */
export function explainLimit(name: ProjectLimitName, value: number): string | undefined {
  const { min, max, mayBeUnlimited } = projectLimitRanges[name]
  if (Number.isInteger(value) && value >= min && value <= max) return undefined
  if (mayBeUnlimited && value === 0) return undefined
  return `${name} must be a whole number from ${min} to ${max}${mayBeUnlimited ? ', or 0 for no limit' : ''}`
}

/** The limits in the fields of a project's hash; undefined when the project has none. */
export function limitsFromHash(fields: Readonly<Record<string, string>>): ProjectLimits | undefined {
  const found = projectLimitNames.flatMap((name) => {
    const value = fields[name]
    return value === undefined ? [] : [[name, Number(value)] as const]
  })
  return found.length === 0 ? undefined : Object.fromEntries(found)
}
