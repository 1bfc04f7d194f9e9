import * as fc from 'fast-check'

export const many = (count: number, name = 'a'): object =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${name}_${i}`, i]))
export const deep = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels))

/** Names and values with sizes around the limits, some of which need escapes. */
export const anyLarge: fc.Arbitrary<Readonly<Record<string, unknown>>> = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.constantFrom('message', 'stack', 'service', 'url', 'é', '"\ud800'),
        fc.string({ maxLength: 3 }),
      ),
      fc.oneof(
        fc
          .tuple(
            fc.constantFrom('x', '😀', 'é', '"', '\u0001', '\ud800'),
            fc.constantFrom(255, 257, 8_193, 30_000, 65_300, 65_400, 65_500, 65_536, 65_537, 200_000),
          )
          .map(([character, count]) => character.repeat(count)),
        fc.integer({ min: 1, max: 25 }).map(deep),
        fc.constantFrom(10, 255, 256, 257, 5_000).map((count) => many(count)),
        fc.jsonValue({ maxDepth: 2 }),
      ),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((members) => Object.fromEntries(members.filter(([name]) => !/^\d+$/.test(name))))
