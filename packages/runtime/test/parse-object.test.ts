import { expect, it } from 'vitest'
import { parseObject } from '../src/parse-object.ts'

it('returns the object of a JSON text', () => {
  expect(parseObject('{"a":[1]}')).toEqual({ a: [1] })
})

it.each(['', '{"a":', 'null', '1', '"text"', 'true'])('returns undefined for %j', (text) => {
  expect(parseObject(text)).toBeUndefined()
})
