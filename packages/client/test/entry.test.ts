import { type Entry as ServerEntry, entrySchema, limits } from '@sluice/schema'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { contractLimits, type Entry, environments, levels, sources } from '../src/index.ts'

describe('the contract of the client is that of the server', () => {
  // `npm run types` checks it, not the test run.
  test('in the type of an entry', () => {
    expectTypeOf<Entry>().toExtend<ServerEntry>()
    expectTypeOf<ServerEntry>().toExtend<Entry>()
    expectTypeOf<KnownFields<Entry>>().toEqualTypeOf<KnownFields<ServerEntry>>()
  })

  test('in the allowed values', () => {
    const { level, environment, source } = entrySchema.properties
    expect(levels).toEqual(level.enum)
    expect([...environments, null]).toEqual(environment.enum)
    expect([...sources, null]).toEqual(source.enum)
  })

  test('in the limits', () => {
    const { errorsPerEntryMax: _, ...clientLimits } = limits
    expect(contractLimits).toEqual(clientLimits)
  })
})

/** The names of the fields, without the index signature. */
type KnownFields<Type> = keyof {
  [Name in keyof Type as string extends Name ? never : Name]: Type[Name]
}
