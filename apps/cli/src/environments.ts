import { entrySchema } from '@sluice/schema'

/** The environments that an entry may name. */
export const environments: readonly string[] = entrySchema.properties.environment.enum.filter(
  (name) => name !== null,
)
