import { describe, expect, it } from 'vitest'
import { ParseBudget, parseLimits } from '../../src/intake/parse-budget.ts'

const { bytesMax, projectBytesMax } = parseLimits

describe('the budget of the parser', () => {
  it('bounds the bytes of one project, and leaves room for others', () => {
    const budget = new ParseBudget()
    budget.reserve('a', projectBytesMax)
    expect(() => budget.reserve('a', 1)).toThrow(
      expect.objectContaining({ code: 'overloaded', headers: { 'retry-after': '1' } }),
    )
    expect(() => budget.reserve('b', bytesMax - projectBytesMax)).not.toThrow()
  })

  it('bounds the bytes of all projects', () => {
    const budget = new ParseBudget()
    budget.reserve('a', projectBytesMax)
    budget.reserve('b', bytesMax - projectBytesMax)
    expect(() => budget.reserve('c', 1)).toThrow(expect.objectContaining({ code: 'overloaded' }))
  })

  it('has room again when bytes are released', () => {
    const budget = new ParseBudget()
    const release = budget.reserve('a', projectBytesMax - 1)
    budget.reserve('a', 1)
    release()
    expect(() => budget.reserve('a', projectBytesMax - 1)).not.toThrow()
    expect(() => budget.reserve('a', 1)).toThrow('More entries arrive')
  })
})
