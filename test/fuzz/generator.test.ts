import { expect, it } from 'vitest'
import type { FuzzRequest } from './fuzz-request.ts'
import { makeRequest } from './generator.ts'

const keys = { exact: 'e', torn: 't', orphan: 'o', revoked: 'r', reader: 'd' }

function textOf({ pieces }: FuzzRequest): string {
  return Buffer.concat(pieces).toString('latin1')
}

it('makes a request again from its seed and number alone', () => {
  const numbers = Array.from({ length: 500 }, (_, number) => number)
  const first = numbers.map((number) => makeRequest(7, number, keys))
  const again = numbers.toReversed().map((number) => makeRequest(7, number, keys))
  expect(again.toReversed()).toEqual(first)
  expect(new Set(first.map(textOf)).size).toBe(first.length)
  expect(makeRequest(8, 0, keys)).not.toEqual(first[0])
})

it('sends the key whose rows are counted exactly only where each answer is read', () => {
  const lossy = Array.from({ length: 3_000 }, (_, number) => makeRequest(1, number, keys)).filter(
    ({ ending }) => ending === 'torn' || ending === 'abandoned',
  )
  expect(lossy.length).toBeGreaterThan(100)
  for (const request of lossy) expect(textOf(request)).not.toMatch(/bearer +e\r/i)
})
