import { seededRandom } from '@sluice/harness'
import { limits } from '@sluice/schema'
import { expect, it } from 'vitest'
import { measureCost } from './cost-search.ts'
import { type CostlyBody, drawCostlyBody, mutateCostlyBody, writeCostlyBody } from './costly-body.ts'

const draw = (): Buffer[] => {
  const random = seededRandom(7)
  let body = drawCostlyBody(random)
  return Array.from({ length: 20 }, () => {
    body = mutateCostlyBody(body, random)
    return writeCostlyBody(body)
  })
}

const small = (body: CostlyBody): CostlyBody => ({ ...body, entryBytes: 2_000, totalBytes: 30_000 })

it('a costly body depends only on its seed, and is never larger than a body may be', () => {
  const bodies = draw()
  expect(draw()).toEqual(bodies)
  expect(Math.max(...bodies.map(({ length }) => length))).toBeLessThanOrEqual(limits.bodyBytesMax)
})

it('most costly bodies are JSON: what costs nothing is not searched for', async () => {
  const random = seededRandom(8)
  const answers: string[] = []
  for (let i = 0; i < 60; i += 1) answers.push((await measureCost(small(drawCostlyBody(random)))).answer)
  expect(answers.filter((answer) => answer !== 'invalid_json').length).toBeGreaterThan(50)
  expect(answers.filter((answer) => /^[1-9]\d* rows$/.test(answer)).length).toBeGreaterThan(10)
})
