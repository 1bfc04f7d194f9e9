import { expect, it } from 'vitest'
import { RecentNodes } from '../src/recent-nodes.ts'

it('has each node once in a while, however often something happens there', () => {
  let nowMs = 0
  const nodes = new RecentNodes(1_000, () => nowMs)
  const times: string[] = []
  for (; nowMs < 2_500; nowMs += 10) {
    for (const node of ['a', 'b']) if (nodes.add(node)) times.push(`${node} ${nowMs}`)
  }
  expect(times).toEqual(['a 0', 'b 0', 'a 1000', 'b 1000', 'a 2000', 'b 2000'])
})

it('has a node that is new at once', () => {
  const nodes = new RecentNodes(1_000, () => 0)
  expect([nodes.add('a'), nodes.add('b'), nodes.add('a')]).toEqual([true, true, false])
})
