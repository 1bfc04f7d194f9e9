import { expect, it } from 'vitest'
import type { FuzzRequest } from './fuzz-request.ts'
import { RequestGenerator } from './generator.ts'

const keys = { exact: 'e', torn: 't', orphan: 'o', revoked: 'r', reader: 'd' }

function textOf({ pieces }: FuzzRequest): string {
  return Buffer.concat(pieces).toString('latin1')
}

const generator = new RequestGenerator(7, keys)

it('makes the same request again from its seed and number', () => {
  const numbers = Array.from({ length: 500 }, (_, number) => number)
  const first = numbers.map((number) => generator.make(number))
  const fresh = new RequestGenerator(7, keys)
  const again = numbers.toReversed().map((number) => fresh.make(number))
  expect(again.toReversed()).toEqual(first)
  expect(new Set(first.map(textOf)).size).toBe(first.length)
  expect(new RequestGenerator(8, keys).make(0)).not.toEqual(first[0])
})

it('uses the key whose rows are counted exactly only where every answer is read', () => {
  const lossy = Array.from({ length: 3_000 }, (_, number) => generator.make(number)).filter(
    ({ ending }) => ending === 'torn' || ending === 'abandoned',
  )
  expect(lossy.length).toBeGreaterThan(100)
  for (const request of lossy) expect(textOf(request)).not.toMatch(/bearer +e\r/i)
})

it('knows the status of a body with a normal head', () => {
  const statuses = new Set(
    Array.from({ length: 3_000 }, (_, number) => generator.make(number)).flatMap(
      ({ statuses: known }) => known ?? [],
    ),
  )
  expect(statuses).toEqual(new Set([200, 202, 400, 401, 403, 404, 429]))
})
