/**
 * What a project may send, where it differs from the processes' defaults. 0 a second is no limit; what is absent is the
 * default. A burst is what may be sent at once after a pause.
 */
export interface ProjectLimits {
  readonly entriesPerSecond?: number
  readonly burstEntries?: number
  /** Of decoded bodies. */
  readonly bytesPerSecond?: number
  readonly burstBytes?: number
}

export type ProjectLimitName = keyof ProjectLimits

/** Changes to a project's limits; null goes back to the default. */
export type ProjectLimitChanges = { readonly [Name in ProjectLimitName]?: number | null }

/**
 * The allowed values. The upper ends are far above what any installation takes, and keep sums exact. Less than a kilobyte
 * a second is below one entry a second: a mistake in the unit.
 */
export const projectLimitRanges: Readonly<
  Record<ProjectLimitName, { min: number; max: number; mayBeNone: boolean }>
> = {
  entriesPerSecond: { min: 1, max: 1_000_000_000, mayBeNone: true },
  burstEntries: { min: 1, max: 1_000_000_000, mayBeNone: false },
  bytesPerSecond: { min: 1_024, max: 1_000_000_000_000, mayBeNone: true },
  burstBytes: { min: 1_024, max: 1_000_000_000_000, mayBeNone: false },
}

export const projectLimitNames = Object.keys(projectLimitRanges) as readonly ProjectLimitName[]

/** Why a value is none for that limit, for people; undefined when it is one. */
export function explainLimit(name: ProjectLimitName, value: number): string | undefined {
  const { min, max, mayBeNone } = projectLimitRanges[name]
  if (Number.isInteger(value) && value >= min && value <= max) return undefined
  if (mayBeNone && value === 0) return undefined
  return `${name} is a whole number from ${min} to ${max}${mayBeNone ? ', or 0 for no limit' : ''}`
}

/** The limits in a project's hash; undefined when it has none of its own. */
export function limitsFromHash(fields: Readonly<Record<string, string>>): ProjectLimits | undefined {
  const found = projectLimitNames.flatMap((name) => {
    const value = fields[name]
    return value === undefined ? [] : [[name, Number(value)] as const]
  })
  return found.length === 0 ? undefined : Object.fromEntries(found)
}
