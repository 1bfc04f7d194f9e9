import { expect, it } from 'vitest'
import { QuerySlots } from '../src/query-slots.ts'

it('takes so many slots of a project, and of all, until one is given back', () => {
  const slots = new QuerySlots(3, 2)
  const refused = { code: 'too_many_queries', status: 429 }
  const giveBack = slots.take('shop')
  slots.take('shop')
  expect(() => slots.take('shop')).toThrow(expect.objectContaining(refused))
  slots.take('billing')
  expect(() => slots.take('billing')).toThrow(expect.objectContaining(refused))
  giveBack()
  slots.take('billing')
  expect(slots.running).toBe(3)
})
