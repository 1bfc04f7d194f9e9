import { type Entry as ServerEntry, entrySchema } from '@sluice/schema'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { type Entry, environments, levels, sources } from '../src/index.ts'

describe('the contract of the client is that of the server', () => {
  // `npm run types` checks it, not the test run.
  test('in the type of an entry', () => {
    expectTypeOf<Known<Entry>>().toEqualTypeOf<Known<ServerEntry>>()
    expectTypeOf<ServerEntry>().toExtend<Entry>()
  })

  test('in the allowed values', () => {
    const { level, environment, source } = entrySchema.properties
    expect(levels).toEqual(level.enum)
    expect([...environments, null]).toEqual(environment.enum)
    expect([...sources, null]).toEqual(source.enum)
  })
})

/** The fields with a name. In the type of the client, an optional field may also be `undefined`, which JSON leaves out. */
type Known<Type> = {
  [Name in keyof Type as string extends Name ? never : Name]: Exclude<Type[Name], undefined>
}
