import { expect, it } from 'vitest'
import { Backlog } from '../src/backlog.ts'

const large = 'x'.repeat(4 * 1024 * 1024)

it('is too large after 16 MiB in large pieces, until a small piece', () => {
  const backlog = new Backlog()
  for (let i = 0; i < 4; i += 1) expect(backlog.isTooLarge(large, false)).toBe(false)
  expect(backlog.isTooLarge(large, false)).toBe(true)
  expect(backlog.isTooLarge(large, false)).toBe(true)
  expect(backlog.isTooLarge('x', false)).toBe(false)
  expect(backlog.isTooLarge(large, false)).toBe(false)
})

it('is not too large if the thread catches up in between', () => {
  const backlog = new Backlog()
  for (let i = 0; i < 50; i += 1) expect(backlog.isTooLarge(i % 4 === 3 ? 'x' : large, false)).toBe(false)
})

it('is too large with any large piece while the API accepts nothing', () => {
  const backlog = new Backlog()
  expect(backlog.isTooLarge(large, true)).toBe(true)
  expect(backlog.isTooLarge('x', true)).toBe(false)
})
