import { expect, it } from 'vitest'
import { Backlog } from '../src/backlog.ts'

const large = 'x'.repeat(4 * 1024 * 1024)

it('is too large after 32 MiB in large pieces, until a small piece', () => {
  const backlog = new Backlog()
  for (let i = 0; i < 8; i += 1) expect(backlog.isTooLarge(large)).toBe(false)
  expect(backlog.isTooLarge(large)).toBe(true)
  expect(backlog.isTooLarge(large)).toBe(true)
  expect(backlog.isTooLarge('x')).toBe(false)
  expect(backlog.isTooLarge(large)).toBe(false)
})

it('is not too large if the thread catches up in between', () => {
  const backlog = new Backlog()
  for (let i = 0; i < 50; i += 1) expect(backlog.isTooLarge(i % 8 === 7 ? 'x' : large)).toBe(false)
})
