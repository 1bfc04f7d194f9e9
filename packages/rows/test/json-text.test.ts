import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseJsonExactly } from '../src/json/parse.ts'
import { anyStyle, toJson, validEntry } from './support/index.ts'

it('toJson writes JSON of the same value in any style', () => {
  fc.assert(
    fc.property(validEntry, anyStyle, (entry, style) => {
      expect(JSON.stringify(parseJsonExactly(toJson(entry, style)))).toBe(JSON.stringify(entry))
    }),
  )
})
