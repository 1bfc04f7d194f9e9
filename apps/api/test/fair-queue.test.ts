import { describe, expect, it } from 'vitest'
import { FairQueue } from '../src/fair-queue.ts'

describe('items of groups', () => {
  it('are taken by their groups in turn, and in order within a group', () => {
    const queue = new FairQueue<string>()
    for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) queue.push(item.charAt(0), item)
    expect(queue.size).toBe(6)
    expect(queue.shift()).toBe('a1')
    queue.push('d', 'd1')
    expect(Array.from({ length: 7 }, () => queue.shift())).toEqual([
      'b1',
      'c1',
      'a2',
      'd1',
      'b2',
      'a3',
      undefined,
    ])
    expect(queue.size).toBe(0)
  })
})
